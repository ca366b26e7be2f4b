"""Properties that hold for every graph, on graphs that nobody would think of."""

from __future__ import annotations

import torch
from helpers import oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.testing import assert_equivariant
from graphgps_pearl.vocabulary import OPERATORS, SKIPS

quick = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Some graphs of up to five nodes: directed or not, loops, duplicates, empty entries."""
    edges, batch, first = [], [], 0
    for graph in range(draw(st.integers(1, 3))):
        n = draw(st.integers(0 if graph else 1, 5))
        if n:
            node = st.integers(first, first + n - 1)
            pairs = draw(st.lists(st.tuples(node, node), max_size=8))
            edges += pairs + ([(v, u) for u, v in pairs] if draw(st.booleans()) else [])
        batch += [graph] * n
        first += n
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T.contiguous(), torch.tensor(batch)


@st.composite
def options(draw: st.DrawFn) -> dict[str, object]:
    return {
        "dim_pe": draw(st.integers(1, 3)),
        "hidden_dim": draw(st.integers(2, 4)),
        "num_layers": draw(st.integers(0, 3)),
        "num_taps": draw(st.integers(1, 4)),
        "gso": draw(st.sampled_from(OPERATORS)),
        "norm": draw(st.sampled_from(["batch", "layer", "none", "graph"])),
        "skip": draw(st.sampled_from(SKIPS)),
        "pool": draw(st.sampled_from(["mean", "sum", "var", "max", "mean+sum"])),
        "act": draw(st.sampled_from(["tanh", "gelu"])),
        "scale": draw(st.booleans()),
    }


def samples_for(batch: Tensor, num_samples: int = 3) -> Tensor:
    return torch.randn(
        len(batch), num_samples, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )


@quick
@given(batches(), options(), st.booleans())
def test_both_encodings_equal_the_oracle(graphs: tuple[Tensor, Tensor], kwargs: dict, training: bool) -> None:
    edges, batch = graphs
    torch.manual_seed(0)
    basis, random = BPEARL(**kwargs).double().train(training), RPEARL(**kwargs).double().train(training)
    expected = oracle.encode(basis, edges, batch)
    oracle.close(basis(edges, batch), expected, "basis")
    samples = samples_for(batch)
    expected = oracle.encode(random, edges, batch, samples)
    oracle.close(random(edges, batch, samples=samples), expected, "samples")


@quick
@given(batches(), options(), st.booleans())
def test_basis_commutes_with_renaming(graphs: tuple[Tensor, Tensor], kwargs: dict, training: bool) -> None:
    edges, batch = graphs
    torch.manual_seed(0)
    pe = BPEARL(**kwargs).double().train(training)
    data = Data(edge_index=edges, batch=batch, num_nodes=len(batch))
    assert_equivariant(lambda d: pe(d.edge_index, d.batch), data, num_permutations=2)


@quick
@given(batches(), options(), st.sampled_from([BPEARL, RPEARL]), st.integers(0, 99))
def test_the_order_of_the_edges_does_not_matter(
    graphs: tuple[Tensor, Tensor], kwargs: dict, kind: type, seed: int
) -> None:
    edges, batch = graphs
    torch.manual_seed(seed)
    pe = kind(**kwargs).double().eval()
    order = torch.randperm(edges.size(1))
    oracle.close(pe(edges[:, order], batch), pe(edges, batch), "shuffled edges")


@quick
@given(batches(), options(), st.sampled_from([BPEARL, RPEARL]))
def test_graphs_do_not_see_each_other(graphs: tuple[Tensor, Tensor], kwargs: dict, kind: type) -> None:
    edges, batch = graphs
    torch.manual_seed(0)
    pe = kind(**kwargs).double().eval()
    together = pe(edges, batch)
    for graph in batch.unique().tolist():
        nodes = (batch == graph).nonzero().flatten()
        own = edges[:, batch[edges[0]] == graph] - nodes[0]
        oracle.close(pe(own, num_nodes=len(nodes)), together[nodes], f"graph {graph} alone")
