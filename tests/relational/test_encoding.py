"""PEARL on graphs with several types of nodes."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.relational import HeteroPEARL

TYPES = ("user", "order", "item")


def database(seed: int = 0, users: int = 12, orders: int = 30, items: int = 8) -> HeteroData:
    """Orders of one user each with one item each, edges in both directions for the first, in one for the
    other."""
    torch.manual_seed(seed)
    data = HeteroData()
    for name, size in zip(TYPES, (users, orders, items), strict=True):
        data[name].num_nodes = size
        data[name].n_id = torch.arange(size)
    made = torch.stack((torch.randint(users, (orders,)), torch.arange(orders)))
    data["user", "made", "order"].edge_index = made
    data["order", "rev_made", "user"].edge_index = made.flip(0)
    data["order", "of", "item"].edge_index = torch.stack(
        (torch.arange(orders), torch.randint(items, (orders,)))
    )
    return data


def small(kind: type = RPEARL, **more) -> RPEARL | BPEARL:
    torch.manual_seed(1)
    settings = {"num_samples": 5} if kind is RPEARL else {}
    return kind(6, hidden_dim=4, num_layers=2, gso="adjacency", **settings, **more).double().eval()


@pytest.mark.parametrize("kind", [RPEARL, BPEARL])
def test_it_is_pearl_on_the_graph_without_types(kind) -> None:
    data, encoding = database(), small(kind)
    pe = HeteroPEARL(TYPES, {"user": 3, "order": 4, "item": 5}, encoding).double().eval()
    made, of = data["user", "made", "order"].edge_index, data["order", "of", "item"].edge_index
    pairs = torch.cat((made + torch.tensor([[0], [12]]), of + torch.tensor([[12], [42]])), dim=1)
    flat = torch.cat((pairs, pairs.flip(0)), dim=1)
    types = torch.tensor([0] * 12 + [1] * 30 + [2] * 8)
    number = torch.cat((torch.arange(12), torch.arange(30), torch.arange(8)))
    whole = encoding(flat, num_nodes=50, **({"node_id": 3 * number + types} if kind is RPEARL else {}))
    found = pe(data)
    for i, name in enumerate(TYPES):
        torch.testing.assert_close(found[name], pe.project[i](whole[types == i]))
        assert found[name].shape == (data[name].num_nodes, (3, 4, 5)[i])


def test_a_row_has_the_same_encoding_in_every_subgraph_that_has_its_neighbourhood() -> None:
    data, pe = database(), HeteroPEARL(TYPES, 4, small()).double().eval()
    whole = pe(data)
    # The orders of user 0, their items, and all orders of these: two hops and more around the user.
    made, of = data["user", "made", "order"].edge_index, data["order", "of", "item"].edge_index
    mine = made[1, made[0] == 0]
    items = of[1, torch.isin(of[0], mine)].unique()
    chosen = {"user": torch.arange(12), "item": items, "order": of[0, torch.isin(of[1], items)].unique()}
    part = data.subgraph(chosen)
    assert part["order"].num_nodes < 30
    torch.testing.assert_close(pe(part)["user"][0], whole["user"][0], rtol=1e-10, atol=1e-10)


def test_subgraphs_of_one_batch_do_not_see_each_other() -> None:
    first, second = database(0), database(1)
    pe = HeteroPEARL(TYPES, 4, small(BPEARL)).double().eval()
    edges, sizes, batch = {}, {}, {}
    for name in TYPES:
        a, b = first[name].num_nodes, second[name].num_nodes
        sizes[name], batch[name] = a + b, torch.tensor([0] * a + [1] * b)
    for kind in first.edge_types:
        shift = torch.tensor([[first[kind[0]].num_nodes], [first[kind[2]].num_nodes]])
        edges[kind] = torch.cat((first[kind].edge_index, second[kind].edge_index + shift), dim=1)
    together = pe(edges, sizes, batch=batch)
    for name in TYPES:
        apart = torch.cat((pe(first)[name], pe(second)[name]))
        torch.testing.assert_close(together[name], apart, rtol=1e-10, atol=1e-10)


def test_arguments_that_are_given_count_before_those_of_the_data() -> None:
    data, pe = database(), HeteroPEARL(TYPES, 4, small()).double().eval()
    other = {name: data[name].n_id + 100 for name in TYPES}
    given = pe(data, n_id=other)
    for name in TYPES:
        data[name].n_id = other[name]
    for name, rows in pe(data).items():
        assert torch.equal(given[name], rows)
    assert not torch.equal(given["user"], pe(database())["user"])


def test_a_database_without_edges() -> None:
    data, pe = HeteroData(), HeteroPEARL(TYPES, 4, small()).double().eval()
    data["user"].num_nodes = 2
    assert {name: rows.shape for name, rows in pe(data).items()} == {"user": (2, 4)}
    data["user", "knows", "user"].edge_label_index = torch.tensor([[0], [1]])  # to be predicted, no edge
    assert {name: rows.shape for name, rows in pe(data).items()} == {"user": (2, 4)}


def test_the_default_is_the_papers() -> None:
    encoding = HeteroPEARL(TYPES, 4).encoding
    assert (encoding.num_samples, encoding.num_taps, len(encoding.phi.layers)) == (120, 7, 6)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="dim_out has"):
        HeteroPEARL(TYPES, {"user": 3})
    with pytest.raises(ValueError, match=r"node types \['page'\]"):
        HeteroPEARL(TYPES, 4)({}, {"page": 3})
    pe, bought = HeteroPEARL(TYPES[:2], 4, RPEARL(4, num_samples=2)), (TYPES[0], "to", TYPES[1])
    sizes = dict(zip(TYPES, (2, 3), strict=False))
    with pytest.raises(ValueError, match="need num_nodes"):
        pe({bought: torch.tensor([[0], [0]])})
    with pytest.raises(ValueError, match="edges by type or a HeteroData, got Data"):
        pe(Data(edge_index=torch.tensor([[0], [0]]), num_nodes=1))
    compressed = HeteroData()
    compressed[bought].adj_t = torch.eye(2).to_sparse_csr()
    with pytest.raises(ValueError, match=r"stored as adj_t, which is not read; store edge_index"):
        pe(compressed, sizes)
    for wrong in (torch.zeros(3, 2, dtype=torch.long), torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)):
        with pytest.raises(ValueError, match=r"edges .* must hold whole numbers \[2, E\], got"):
            pe({bought: wrong}, sizes)
    with pytest.raises(ValueError, match=r"node types \['shop'\]"):
        pe({(TYPES[0], "at", "shop"): torch.tensor([[0], [0]])}, sizes)
    for edge in ([2, 0], [0, 3], [-1, 0]):
        with pytest.raises(ValueError, match=r"edges .* have nodes that .* with \d has not"):
            pe({bought: torch.tensor(edge).view(2, 1)}, sizes)
    for key in ("n_id", "batch"):
        with pytest.raises(ValueError, match=rf"{key} of {TYPES[0]} has 3 numbers for 2 nodes"):
            pe({}, sizes, **{key: {TYPES[0]: torch.arange(3), TYPES[1]: torch.arange(2)}})
        with pytest.raises(ValueError, match=rf"{key} of {TYPES[1]} has 0 numbers for 3 nodes"):
            pe({}, sizes, **{key: {TYPES[0]: torch.arange(2)}})
