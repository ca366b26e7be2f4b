"""What the modules refuse, and in which words: wrong graphs, options, samples, numbers out of range."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from helpers.graphs import random_graph
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graphgps_pearl.pearl import BPEARL, RPEARL, GINLayer, Phi, TapLayer, hooks

EDGES = random_graph(7)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)
KINDS = pytest.mark.parametrize("kind", [BPEARL, RPEARL])
SMALL: dict[str, Any] = {"dim_pe": 5, "hidden_dim": 6, "num_layers": 2}


@KINDS
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge_index": torch.zeros(3, 4, dtype=torch.long)}, r"edge_index must have shape \[2, num_edges\]"),
        ({"edge_index": torch.zeros(4, dtype=torch.long)}, r"edge_index must have shape \[2, num_edges\]"),
        ({"edge_index": torch.zeros(2, 4)}, "edge_index must hold integers"),
        ({"edge_index": EDGES, "num_nodes": 3}, "but there are 3 nodes"),
        ({"edge_index": torch.tensor([[0], [-1]]), "num_nodes": 3}, "names nodes -1 to 0"),
        (
            {"edge_index": Data(), "num_nodes": 3},
            r"this Data has no edge_index; .* has one of shape \[2, 0\]",
        ),
        ({"edge_index": None, "num_nodes": 3}, "a tensor or a PyG Data, got NoneType; pass data.edge_index"),
        (
            {"edge_index": torch.tensor([[0], [5]]), "batch": torch.zeros(3, dtype=torch.long)},
            "names nodes 0 to 5, but batch has 3 entries",
        ),
        ({"edge_index": NO_EDGES, "num_nodes": -1}, "must not be negative"),
        ({"edge_index": NO_EDGES, "batch": torch.tensor([0, 1, 0])}, "batch must be sorted"),
        ({"edge_index": NO_EDGES, "batch": torch.tensor([-1, 0])}, "negative graph numbers"),
        ({"edge_index": NO_EDGES, "batch": torch.tensor([0, 1]), "num_nodes": 3}, "2 entries, .* 3 nodes"),
        ({"edge_index": NO_EDGES, "batch": torch.tensor([0.0, 1.0])}, "batch must be a vector of integers"),
        (
            {"edge_index": torch.tensor([[0, 1], [0, 2]]), "batch": torch.tensor([0, 0, 1])},
            r"edge \(1, 2\) joins two graphs",
        ),
    ],
)
def test_wrong_graphs(kind: type, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**SMALL)(**arguments)


@pytest.mark.parametrize("shape", [(6, 3), (7,), (7, 0), (7, 2, 1)])
def test_samples_of_wrong_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"samples must have shape \[7, M\]"):
        RPEARL(**SMALL)(EDGES, samples=torch.zeros(shape))


def test_samples_of_integers() -> None:
    with pytest.raises(ValueError, match="floating-point"):
        RPEARL(**SMALL)(EDGES, samples=torch.ones(7, 2, dtype=torch.long))


@KINDS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gso": "laplace"}, "unknown gso 'laplace'; choose from adjacency, laplacian, sym_adjacency"),
        ({"norm": "instance"}, "unknown norm 'instance'; choose from batch, layer, graph, none"),
        ({"skip": "dense"}, "unknown skip 'dense'; choose from none, residual, sum"),
        ({"act": "reluu"}, "unknown act 'reluu'; choose from relu"),
        ({"pool": "mean+median"}, "unknown pool 'median'; choose from mean, sum, var, std, max"),
        ({"pool": "mean+mean"}, "names a statistic twice"),
        ({"num_taps": 0, "num_layers": 0}, "no layer left"),
        ({"num_taps": -1}, "num_taps must be at least 0"),
        ({"num_layers": -1}, "num_layers must be at least 0"),
        ({"hidden_dim": 0}, "hidden_dim must be at least 1"),
        ({"dim_pe": 0}, "dim_pe must be at least 1"),
        ({"mlp_layers": 0}, "mlp_layers must be at least 1"),
        ({"mlp_hidden": 0}, "mlp_hidden must be at least 1"),
        ({"norm": "graph", "num_taps": 0}, "norm 'graph' is that of the generalised layer"),
        ({"norm": "layer", "hidden_dim": 1}, "width of at least 2"),
    ],
)
def test_wrong_options(kind: type, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**(SMALL | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"distribution": "normal"},
            "unknown distribution 'normal'; choose from gaussian, rademacher, two_point, sobol",
        ),
        ({"num_samples": 0}, "num_samples must be at least 1"),
        ({"chunk_size": 0}, "chunk_size must be at least 1"),
        ({"num_eval_draws": 0}, "num_eval_draws must be at least 1"),
    ],
)
def test_wrong_sampling_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RPEARL(**(SMALL | options))


def test_phi_of_layers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="gives 3 columns"):
        Phi([TapLayer(1, 3, 2), GINLayer(4, 4)])
    with pytest.raises(ValueError, match="must have the same width"):
        Phi([TapLayer(1, 3, 2), GINLayer(3, 4)], skip="sum")
    with pytest.raises(ValueError, match="at least one layer"):
        Phi([])
    with pytest.raises(ValueError, match="scalar signals"):
        BPEARL.from_phi(Phi([TapLayer(2, 3, 2)]))


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@KINDS
def test_taps_out_of_range_are_refused(kind: type, norm: str) -> None:
    """Squares would overflow, a norm make zeros of all rows, and its running variance stay infinite."""
    hub = torch.stack([torch.zeros(300, dtype=torch.long), torch.arange(1, 301)])
    pe = kind(**SMALL, gso="laplacian", num_taps=10, norm=norm)
    before = copy.deepcopy(pe.state_dict())
    with pytest.raises(ValueError, match=r"the taps reach .*e\+2.*num_taps.*gso random_walk"):
        pe(torch.cat([hub, hub.flip(0)], dim=1))
    assert all(torch.equal(a, b) for a, b in zip(before.values(), pe.state_dict().values(), strict=True))
    assert kind(**SMALL, gso="random_walk", num_taps=10, norm=norm)(hub).isfinite().all()


@pytest.mark.parametrize(("norm", "act"), [("batch", "relu"), ("graph", "tanh"), ("batch", "tanh")])
def test_second_derivatives_are_refused_where_they_would_be_wrong(norm: str, act: str) -> None:
    pe = BPEARL(**SMALL, norm=norm, act=act).double()
    weight = pe.phi.layers[0].weight
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(pe(EDGES).square().sum(), weight, create_graph=True)


@pytest.mark.parametrize(("norm", "act"), [("none", "relu"), ("layer", "relu"), ("layer", "tanh")])
def test_second_derivatives_are_right_elsewhere(norm: str, act: str) -> None:
    pe = BPEARL(**SMALL, norm=norm, act=act).double()
    names, parameters = zip(*pe.named_parameters(), strict=True)

    def encode(*values: Tensor) -> Tensor:
        return torch.func.functional_call(pe, dict(zip(names, values, strict=True)), (EDGES,)).sin().sum()

    assert torch.autograd.gradgradcheck(encode, parameters)


def test_more_pairs_than_can_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "MAX_PAIRS", 40)
    for quotient in (None, False, True):
        with pytest.raises(ValueError, match="B-PEARL on 49 pairs of nodes"):
            BPEARL(**SMALL, quotient=quotient)(EDGES)


def test_graphs_of_several_types_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"HeteroData has .* several types: pass data.to_homogeneous\(\)"):
        BPEARL(**SMALL)(HeteroData())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.ones(3), r"one floating-point number for each of the \d+ edges"),
        (torch.ones(EDGES.size(1), dtype=torch.long), "floating-point"),
        (-torch.ones(EDGES.size(1)), "not negative"),
        (torch.full((EDGES.size(1),), torch.inf), "finite"),
        (torch.ones(EDGES.size(1), requires_grad=True), r"gradient.*edge_weight.detach\(\)"),
    ],
)
def test_wrong_edge_weights(weight: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RPEARL(**SMALL)(EDGES, edge_weight=weight)
