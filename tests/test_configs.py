"""Every shipped config: it loads, keeps to the budget, and trains every parameter it has."""

from pathlib import Path

import networkx as nx
import pytest
import torch
from ogb.utils.features import get_atom_feature_dims, get_bond_feature_dims
from torch_geometric.data import Batch, Data
from torch_geometric.nn import PNAConv
from torch_geometric.utils import from_networkx

from graphgps_pearl import config, data, encoders, networks
from graphgps_pearl.config.loading import file_settings
from graphgps_pearl.registry import register
from graphgps_pearl.training.losses import make_loss

CONFIGS = sorted((Path(__file__).resolve().parents[1] / "configs").glob("*.yaml"))
NAMES = [path.stem for path in CONFIGS]
DATASETS = ("zinc", "peptides", "peptides-func", "drugood")
COMPARED = ("none", "none-wide", "lappe-8s", "rwse", "signnet", "spe", "rpearl", "bpearl")


def categories(dims: list[int], count: int) -> torch.Tensor:
    return torch.stack([torch.randint(dim, (count,)) for dim in dims], dim=1)


def features(cfg, spec, num_nodes: int, num_edges: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random node and edge features of the kind that the dataset has."""
    if cfg.dataset.node_encoder_num_types:
        nodes = torch.randint(cfg.dataset.node_encoder_num_types, (num_nodes, 1))
        return nodes, torch.randint(1, cfg.dataset.edge_encoder_num_types, (num_edges,))
    if "Atom" in cfg.dataset.node_encoder_name:
        return categories(get_atom_feature_dims(), num_nodes), categories(get_bond_feature_dims(), num_edges)
    return torch.rand(num_nodes, spec.dim_in), torch.rand(num_edges, spec.edge_dim)


def molecule_like(cfg, spec, seed: int) -> Data:
    """A ring with a tail and a branch, as the dataset would give it, transforms included."""
    graph = nx.lollipop_graph(3, 4 + seed)
    graph.add_edges_from([(0, 20), (20, 21), (21, 22), (22, 0)])
    graph = nx.convert_node_labels_to_integers(graph)
    edge_index = from_networkx(graph).edge_index
    x, edge_attr = features(cfg, spec, len(graph), edge_index.size(1))
    rows = len(graph) if spec.task == "node" else 1
    y = torch.rand(rows, spec.dim_out)
    if spec.task_type == "classification":
        y = torch.zeros(rows, dtype=torch.long)
    elif spec.task_type != "regression":
        y = (y > 0.5).float()
    graph = Data(x=x, edge_index=edge_index, edge_attr=edge_attr, y=y)
    for transform in encoders.required_transforms(cfg):
        graph = transform(graph)
    return graph


def build(path: Path):
    register()
    cfg = config.load(path)
    spec = data.spec(cfg)
    assert spec is not None
    return cfg, spec, networks.build(cfg, spec.dim_in, spec.dim_out)


@pytest.mark.parametrize("path", CONFIGS, ids=NAMES)
def test_one_step_moves_every_parameter_within_the_budget(path):
    torch.manual_seed(0)
    cfg, spec, network = build(path)
    counts = networks.count_parameters(network)
    budget = 650_000 if path.stem.endswith("-644k") else 500_000
    assert sum(counts.values()) <= cfg.train.max_params == budget
    # An odd number of graphs: the signs that are the gradient of an absolute error cannot cancel.
    graphs = [molecule_like(cfg, spec, seed) for seed in range(5)]
    if networks.needs_degrees(network):
        networks.set_degrees(network, PNAConv.get_degree_histogram(graphs))
    batch = Batch.from_data_list(graphs)
    pred, true = network(batch)
    make_loss(cfg.model.loss_fun, spec.task_type)(pred, true).backward()
    without = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert not without
    torch.optim.SGD(network.parameters(), lr=0.1).step()


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_dataset_has_one_config_per_encoder_and_the_same_network(dataset):
    reference = None
    for encoder in COMPARED:
        path = CONFIGS[0].with_name(f"{dataset}-{encoder}.yaml")
        assert path.is_file(), path.name
        if encoder != "none-wide":
            network = build(path)[2]
            body = {k: v for k, v in networks.count_parameters(network).items() if k != "encoder"}
            reference = reference or body
            assert body == reference, path.name


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_widened_control_has_the_parameters_of_the_largest(dataset):
    def total(name: str) -> int:
        return sum(networks.count_parameters(build(CONFIGS[0].with_name(f"{name}.yaml"))[2]).values())

    control = f"{dataset}-none-wide"
    same_kind = [name for name in NAMES if is_of(name, dataset) and name != control and is_gps(name)]
    largest = max(total(name) for name in same_kind)
    assert total(control) == pytest.approx(largest, rel=0.03)


def is_of(name: str, dataset: str) -> bool:
    """Whether a config belongs to a dataset (and not to one whose name is longer)."""
    longer = [other for other in DATASETS if other.startswith(f"{dataset}-")]
    return name.startswith(f"{dataset}-") and not any(name.startswith(f"{other}-") for other in longer)


def is_gps(name: str) -> bool:
    """Whether a config's network is GPS."""
    return config.load(CONFIGS[0].with_name(f"{name}.yaml")).model.type == "GPSModel"


def test_counts_of_the_paper():
    """Its two settings on ZINC: 487k and 644k parameters; with other layers near 487k."""
    for encoder in ("bpearl", "rpearl"):
        for name, count in (
            ("gine-487k", 487_000),
            ("gine-644k", 644_000),
            ("gatedgcn", 487_000),
            ("pna", 487_000),
        ):
            network = build(CONFIGS[0].with_name(f"zinc-{encoder}-{name}.yaml"))[2]
            assert sum(networks.count_parameters(network).values()) == pytest.approx(count, rel=0.01)


def test_counts_of_graphgps():
    """GPS on ZINC in upstream GraphGPS: 423,717 parameters with RWSE, 423,873 without an encoding."""
    for name, count in (("zinc-rwse", 423_717), ("zinc-none", 423_873)):
        _, _, network = build(CONFIGS[0].with_name(f"{name}.yaml"))
        assert sum(networks.count_parameters(network).values()) == count


@pytest.mark.parametrize("path", CONFIGS, ids=NAMES)
def test_a_config_with_pearl_says_whether_it_scales(path):
    """The configs were tuned with what they say; a default that changes may not change them."""
    said = {setting.key for setting in file_settings(path)}
    for encoding in set(config.encodings(config.load(path))) & {"BPEARL", "RPEARL"}:
        assert f"posenc_{encoding}.scale" in said
