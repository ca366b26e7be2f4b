"""GraphormerBias: what is computed for each graph, and what the network gets."""

from itertools import pairwise

import networkx as nx
import pytest
import torch
from helpers.graphs import random_graph
from torch_geometric.data import Batch, Data

from graphgps_pearl import config, encoders, networks
from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.encoders.graphormer import AddShortestPaths
from graphgps_pearl.encoders.pearl import BPEARLNodeEncoder
from graphgps_pearl.errors import ConfigError, DataError

WORDS: dict[str, object] = {
    "dataset.format": "PyG-ZINC",
    "dataset.task": "graph",
    "dataset.task_type": "regression",
    "metric_best": "mae",
    "metric_agg": "argmin",
    "dataset.node_encoder": True,
    "dataset.node_encoder_name": "TypeDictNode+GraphormerBias",
    "dataset.node_encoder_num_types": 28,
    "dataset.node_encoder_bn": False,
    "dataset.edge_encoder_num_types": 4,
    "posenc_GraphormerBias.num_spatial_types": 5,
    "posenc_GraphormerBias.num_in_degrees": 12,
    "posenc_GraphormerBias.num_out_degrees": 12,
    "model.type": "Graphormer",
    "model.loss_fun": "l1",
    "model.graph_pooling": "graph_token",
    "graphormer.num_layers": 2,
    "graphormer.embed_dim": 16,
    "gnn.dim_inner": 16,
    "gnn.head": "graphormer_graph",
}
GPS: dict[str, object] = {
    "model.type": "GPSModel",
    "gt.layer_type": "GINE+BiasedTransformer",
    "gt.dim_hidden": 16,
    "gt.n_heads": 4,
    "gnn.head": "san_graph",
    "dataset.edge_encoder": True,
    "dataset.edge_encoder_name": "TypeDictEdge",
}
PAIRS: dict[str, object] = {
    "dataset__node_encoder_name": "TypeDictNode+BPEARL+GraphormerBias",
    "posenc_BPEARL__pair_bias": "shared",
    "posenc_BPEARL__dim_pe": 4,
    "dataset__edge_encoder": True,
    "dataset__edge_encoder_name": "TypeDictEdge",
}
EDGES: dict[str, object] = {"posenc_BPEARL__pair_bias": "none", "posenc_BPEARL__pair_edges": True}
EQUIVSTABLE: dict[str, object] = {
    "dataset__node_encoder_name": "TypeDictNode+EquivStableLapPE",
    "model__graph_pooling": "mean",
    "gnn__head": "san_graph",
}
SAN: dict[str, object] = {
    "dataset__edge_encoder": True,
    "dataset__edge_encoder_name": "TypeDictEdge",
    "gt__layer_type": "SANLayer",
    "gt__dim_hidden": 16,
    "gt__n_heads": 4,
}
TOKEN: dict[str, object] = {
    "model__graph_pooling": "graph_token",
    "posenc_GraphormerBias__node_degrees_only": True,
}


def load(**changes: object):
    words = WORDS | {key.replace("__", "."): value for key, value in changes.items()}
    return config.parse("{}", [str(word) for item in words.items() for word in item])


def gps(**changes: object):
    return load(**{key.replace(".", "__"): value for key, value in GPS.items()} | changes)


def graph(n: int, seed: int = 0) -> Data:
    torch.manual_seed(seed)
    edges = random_graph(n)
    return Data(
        x=torch.randint(28, (n, 1)),
        edge_index=edges,
        edge_attr=torch.randint(1, 4, (edges.size(1),)),
        num_nodes=n,
        y=torch.zeros(1),
    )


def batch_of(cfg, *graphs: Data) -> Batch:
    (transform,) = encoders.required_transforms(cfg)
    return Batch.from_data_list([transform(one.clone()) for one in graphs])


@pytest.mark.parametrize("n", [1, 6, 11])
def test_paths_are_networkxs(n: int) -> None:
    data = AddShortestPaths(4, 20, 20)(graph(n, n))
    net = nx.DiGraph()
    net.add_nodes_from(range(n))
    types = {}
    for (u, v), kind in zip(data.edge_index.T.tolist(), data.edge_attr.tolist(), strict=True):
        net.add_edge(u, v)
        types[u, v] = kind
    distance, path = data.graphormer_distance.view(n, n), data.graphormer_path.view(n, n, 4)
    for i, found in nx.all_pairs_shortest_path(net):
        for j in range(n):
            nodes = found.get(j, [])[:4]
            assert distance[i, j] == (len(nodes) - 1 if nodes else 4)
            expected = [types[edge] for edge in pairwise(nodes)]
            assert path[i, j].tolist() == expected + [0] * (4 - len(expected))
    assert data.graphormer_degrees.tolist() == [[net.in_degree(v), net.out_degree(v)] for v in range(n)]


@pytest.mark.parametrize("make", [load, gps])
def test_a_graph_is_predicted_alike_alone_in_a_batch_and_renumbered(make) -> None:
    cfg = make()
    torch.manual_seed(0)
    network = networks.build(cfg, 1, 1).double().eval()
    graphs = [graph(n, n) for n in (7, 2, 9)]
    together, _ = network(batch_of(cfg, *graphs))
    alone = torch.cat([network(batch_of(cfg, one))[0] for one in graphs])
    torch.testing.assert_close(together, alone)
    # A path, whose shortest paths are unique whatever the numbers.
    line = torch.arange(6)
    edges = torch.stack((line[:-1], line[1:]))
    data = Data(x=torch.arange(6).view(-1, 1), edge_index=torch.cat((edges, edges.flip(0)), 1), num_nodes=6)
    data.edge_attr, data.y = torch.tensor([1, 2, 3, 1, 2] * 2), torch.zeros(1)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = Data(x=data.x[order], edge_index=order.argsort()[data.edge_index], edge_attr=data.edge_attr)
    moved.y = data.y
    first, second = (network(batch_of(cfg, one))[0] for one in (data, moved))
    torch.testing.assert_close(first, second)


def test_the_token_comes_first_and_edges_follow_their_nodes() -> None:
    cfg = gps()
    encoder = networks.build(cfg, 1, 1).encoder
    graphs = [graph(4, 1), graph(3, 2)]
    plain, encoded = batch_of(cfg, *graphs), encoder(batch_of(cfg, *graphs))
    token = encoder.node_encoder.encoders[-1].token
    assert encoded.batch.tolist() == [0] * 5 + [1] * 4 and encoded.ptr.tolist() == [0, 5, 9]
    assert encoded.x[[0, 5]].equal(token.expand(2, -1))
    assert (encoded.edge_index - plain.edge_index).equal(plain.batch[plain.edge_index] + 1)
    assert EncoderOutput.of(encoded).bias_of_layer(0).shape == (2, 4, 5, 5)


@pytest.mark.parametrize("attribute", ["graphormer_degrees", "graphormer_distance"])
def test_missing_precomputed_values_say_what_to_do(attribute: str) -> None:
    cfg = gps()
    batch = batch_of(cfg, graph(4))
    del batch[attribute]
    with pytest.raises(DataError, match=f"GraphormerBias needs the precomputed '{attribute}'"):
        networks.build(cfg, 1, 1)(batch)


@pytest.mark.parametrize("kind", ["shared", "per_layer", "updated"])
def test_pairs_of_bpearl_have_the_sizes_of_the_network(kind: str) -> None:
    # gt.* has other heads, layers and width: 4, 3 and 64.
    cfg = load(
        dataset__node_encoder_name="TypeDictNode+BPEARL",
        posenc_BPEARL__pair_bias=kind,
        posenc_BPEARL__dim_pe=4,
        graphormer__num_heads=2,
        graphormer__num_layers=5,
        model__graph_pooling="mean",
        gt__n_heads=4,
    )
    network = networks.build(cfg, 1, 1)
    network(Batch.from_data_list([graph(5), graph(3)]))[0].sum().backward()
    assert [name for name, weight in network.named_parameters() if weight.grad is None] == []


def test_encodings_before_the_token_know_of_it() -> None:
    """What is per node has a row of zeros for every token."""
    names = "TypeDictNode+BPEARL+EquivStableLapPE+GraphormerBias"
    cfg = gps(dataset__node_encoder_name=names, posenc_BPEARL__inject="every_layer", posenc_BPEARL__dim_pe=4)
    transforms = encoders.required_transforms(cfg)
    graphs = [graph(n, n) for n in (6, 4)]
    for transform in transforms:
        graphs = [transform(one) for one in graphs]
    torch.manual_seed(0)
    network = networks.build(cfg, 1, 1).double()
    encoded = network.eval().encoder(Batch.from_data_list(graphs))
    given = EncoderOutput.of(encoded).per_layer
    for rows in (given, encoded.pe_EquivStableLapPE):
        assert rows.abs().sum(1).eq(0).nonzero().flatten().tolist() == [0, 7]
    bpearl = next(m for m in network.modules() if isinstance(m, BPEARLNodeEncoder))
    torch.testing.assert_close(given[8:], bpearl.encode(Batch.from_data_list(graphs[1:])))
    together, _ = network(Batch.from_data_list(graphs))
    alone = torch.cat([network(Batch.from_data_list([one]))[0] for one in graphs])
    torch.testing.assert_close(together, alone)
    network.train()(Batch.from_data_list(graphs))[0].sum().backward()
    assert [name for name, weight in network.named_parameters() if weight.grad is None] == []


def test_one_directed_edge_has_paths() -> None:
    edge = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([3]))
    data = AddShortestPaths(2, 4, 4)(edge)
    assert data.graphormer_distance.tolist() == [0, 1, 2, 0]
    assert data.graphormer_path.tolist() == [[0, 0], [3, 0], [0, 0], [0, 0]]


def test_graphs_without_edges_have_paths_where_the_others_have() -> None:
    """A batch has an attribute of all its graphs or of none."""
    nodes, edges = torch.zeros(2, 1), torch.tensor([[0, 1], [1, 0]])
    for shape, stored in (((1,), True), ((3,), False)):
        pair = Data(x=nodes, edge_index=edges, edge_attr=torch.ones(2, *shape, dtype=torch.long))
        none = Data(x=nodes, edge_index=edges[:, :0], edge_attr=torch.ones(0, *shape, dtype=torch.long))
        made = [AddShortestPaths(3, 4, 4)(graph) for graph in (none, pair)]
        assert ("graphormer_path" in Batch.from_data_list(made)) == stored


@pytest.mark.parametrize(("kind", "said"), [(-1, "0 to 3"), (65537, "-32768 to 32767")])
def test_types_of_edges_out_of_range_are_named(kind: int, said: str) -> None:
    data, cfg = graph(4), load()
    data.edge_attr[1] = kind
    with pytest.raises(DataError, match=f"edge.* type {kind}.* {said}"):
        networks.build(cfg, 1, 1)(batch_of(cfg, data))


def test_data_that_does_not_fit_is_named() -> None:
    with pytest.raises(DataError, match=r"num_in_degrees: 2, but .* in-degree [2-9].*at least"):
        AddShortestPaths(4, 2, 99)(graph(8))
    cfg = load(dataset__edge_encoder_num_types=2)
    with pytest.raises(DataError, match="edge_encoder_num_types: 2, but an edge has type 3"):
        networks.build(cfg, 1, 1)(batch_of(cfg, graph(9)))


@pytest.mark.parametrize(
    ("make", "changes", "said"),
    [
        (load, {"graphormer__embed_dim": 20}, "graphormer.embed_dim = 20: must equal gnn.dim_inner = 16"),
        (load, {"graphormer__num_heads": 5}, "graphormer.num_heads = 5: must divide embed_dim = 16"),
        (load, {"posenc_GraphormerBias__num_in_degrees": "null"}, "num_in_degrees = null: expected a number"),
        (load, {"graphormer__use_graph_token": False}, "graph_token: needs GraphormerBias and"),
        (
            load,
            {"model__graph_pooling": "add+graph_token", "graphormer__use_graph_token": False},
            "add.graph_token: needs Graph",
        ),
        (load, {"gnn__head": "node", "dataset__task": "node"}, "use_graph_token = True: gnn.head = node"),
        (gps, {"gt__n_heads": 2}, "graphormer.num_heads = 4: must equal gt.n_heads = 2"),
        (gps, {"gt__layer_type": "GINE+Transformer"}, "does not read the bias of GraphormerBias"),
        (gps, {"posenc_GraphormerBias__node_degrees_only": True}, "BiasedTransformer: needs GraphormerBias"),
        (gps, {"dataset__node_encoder_name": "TypeDictNode+GraphormerBias+RWSE"}, "name it last"),
        (gps, TOKEN | {"gt__layer_type": "GINE+None"}, "graph_token: the token has no edges"),
        (gps, TOKEN | {"model__type": "custom_gnn", "gnn__layer_type": "gineconv"}, "the token has no edges"),
        (load, TOKEN | {"model__type": "SANTransformer", "gt__full_graph": False} | SAN, "has no edges"),
        (load, {"gt__attn_gate": "head"}, "gt.attn_gate = head: model.type Graphormer has no use for it"),
        (load, {"gt__degree_scaler": True}, "gt.degree_scaler = True: model.type Graphormer"),
        (load, {"gt__edge_update": True}, "gt.edge_update = True: model.type Graphormer"),
        (load, PAIRS | EDGES, "pair_edges = True: model.type Graphormer reads no edge features"),
        (load, EQUIVSTABLE, "model.type Graphormer"),
        (load, EQUIVSTABLE | {"model__type": "SANTransformer"} | SAN, "model.type SANTransformer"),
        (load, PAIRS, "pair_bias = shared: GraphormerBias gives a bias of the attention too"),
        (gps, PAIRS, "pair_bias = shared: GraphormerBias gives a bias of the attention too"),
        (
            load,
            PAIRS | {"posenc_GraphormerBias__node_degrees_only": True},
            "pair_bias = shared: .*graphormer.use_graph_token False",
        ),
    ],
)
def test_contradictions_are_refused(make, changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("+", r"\+")):
        make(**changes)


def test_a_norm_over_the_graph_reaches_the_token() -> None:
    norms = {"gt__layer_norm": True, "gt__batch_norm": False}
    cfg = gps(**TOKEN, gt__layer_type="GINE+None", **norms)
    found = networks.build(cfg, 1, 1).eval()(batch_of(cfg, graph(4, 1), graph(7, 2)))[0]
    assert not torch.allclose(found[0], found[1])
