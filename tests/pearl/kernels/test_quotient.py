"""Equal rows merged: the same encoding, gradients and running statistics as all pairs; exact colours."""

from __future__ import annotations

import copy
from itertools import product

import pytest
import torch
from helpers import oracle
from helpers.graphs import awkward_batch, batch_of, circular_skip_link, molecule_like, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphgps_pearl.pearl import BPEARL, Phi, TapLayer, kernels
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.kernels import colours, plan
from graphgps_pearl.pearl.kernels.plan import Plan, build_plan
from graphgps_pearl.pearl.kernels.quotient import QuotientRows
from graphgps_pearl.pearl.rows import PairRows
from graphgps_pearl.vocabulary import OPERATORS, POOLS, SKIPS


def molecules() -> tuple[Tensor, Tensor]:
    """Graphs longer than the signal reaches, some of them equal."""
    data = batch_of(*[(molecule_like(n, seed), n) for n, seed in ((24, 0), (9, 1), (17, 2), (24, 0))])
    return data.edge_index, data.batch


def directed() -> tuple[Tensor, Tensor]:
    """Random directed graphs with loops and duplicates, and a node of its own."""
    generator = torch.Generator().manual_seed(3)
    edges = torch.cat([torch.randint(7 * g, 7 * g + 6, (2, 14), generator=generator) for g in range(3)], 1)
    return edges, torch.arange(21) // 7


BATCHES = {"awkward": awkward_batch(), "molecules": molecules(), "directed": directed()}


def build(training: bool = True, **options: object) -> BPEARL:
    torch.manual_seed(0)
    sizes = {"dim_pe": 2, "hidden_dim": 3, "num_layers": 3, "mlp_hidden": 4, "act": "tanh", "quotient": True}
    module = BPEARL(**(sizes | options)).double()
    for tensor in module.state_dict().values():
        tensor.add_(0.3 * torch.rand_like(tensor))
    return module.train(training)


def assert_merging_changes_nothing(module: BPEARL, edges: Tensor, batch: Tensor) -> None:
    pairs = copy.deepcopy(module)
    pairs.quotient = False
    assert module.quotient
    fast, slow = module(edges, batch), pairs(edges, batch)
    oracle.close(fast, slow, "output")
    direction = torch.randn(fast.shape, generator=torch.Generator().manual_seed(7), dtype=fast.dtype)
    gradients = [
        torch.autograd.grad((p * direction).sum(), list(m.parameters()))
        for p, m in ((fast, module), (slow, pairs))
    ]
    for (name, _), a, b in zip(module.named_parameters(), *gradients, strict=True):
        oracle.close(a, b, f"gradient of {name}")
    for (name, a), b in zip(module.named_buffers(), pairs.buffers(), strict=True):
        oracle.close(a, b, name)


@pytest.mark.parametrize("data", BATCHES)
@pytest.mark.parametrize("norm", ["batch", "graph", "layer", "none"])
def test_every_norm_operator_and_skip(data: str, norm: str) -> None:
    for (i, gso), num_taps in product(enumerate(OPERATORS), (1, 4)):
        module = build(norm=norm, gso=gso, num_taps=num_taps, skip=SKIPS[i % 3])
        assert_merging_changes_nothing(module, *BATCHES[data])
    if norm != "graph":
        assert_merging_changes_nothing(build(norm=norm, num_taps=0), *BATCHES[data])


@pytest.mark.parametrize("data", BATCHES)
@pytest.mark.parametrize("pool", [*POOLS, "mean+std", "sum+max+var"])
def test_every_statistic_and_depth(data: str, pool: str) -> None:
    for num_layers, training, act in ((0, True, "relu"), (1, False, "tanh"), (3, True, "relu")):
        module = build(training, pool=pool, num_layers=num_layers, num_taps=3, act=act, scale=training)
        assert_merging_changes_nothing(module, *BATCHES[data])


def test_one_column_with_residual_skip() -> None:
    module = build(hidden_dim=1, num_taps=3, norm="none")
    oracle.assert_matches(module, *BATCHES["directed"])
    assert_merging_changes_nothing(module, *BATCHES["directed"])


def test_all_pairs_equal_the_oracle() -> None:
    for norm, data in product(("batch", "graph", "layer"), BATCHES.values()):
        module = build(norm=norm, num_taps=3)
        module.quotient = False
        oracle.assert_matches(module, *data)


@pytest.mark.parametrize("data", BATCHES)
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_pairs_within_reach(monkeypatch: pytest.MonkeyPatch, data: str, norm: str) -> None:
    """Without colours: all that is left out are pairs which no signal reaches."""
    monkeypatch.setattr(kernels, "build_plan", lambda *a, **b: build_plan(*a, **(b | {"refined": False})))
    for (i, gso), num_taps in product(enumerate(OPERATORS), (1, 3)):
        act, skip = ("relu", "tanh")[i % 2], SKIPS[i % 3]
        module = build(norm=norm, gso=gso, num_taps=num_taps, num_layers=1 + i % 2, act=act, skip=skip)
        assert_merging_changes_nothing(module, *BATCHES[data])
    for pool, training in (("sum+max+var", True), ("self", False)):
        module = build(training, pool=pool, norm=norm, num_taps=0, num_layers=2)
        assert_merging_changes_nothing(module, *BATCHES[data])


def test_rows_within_reach_of_a_chain() -> None:
    line = torch.stack([torch.arange(8), torch.arange(1, 9)])
    graphs = check_graphs(torch.cat([line, line.flip(0)], dim=1))
    found = build_plan(graphs, 2, 1, "random_walk", keep_pairs=True, refined=False)  # two steps
    assert found.pool_size.tolist() == [4, 5, 6, 6, 6, 6, 6, 5, 4]  # with the empty pair
    assert int(found.pool_count.sum()) == 81 and found.pair_row is not None
    assert found.pair_row.view(9, 9)[0].tolist() == [0, 1, 2, *[39] * 6]


def test_far_pairs_cost_nothing() -> None:
    """On chains the rows that remain grow with n, and the pairs with n²."""
    rows = {}
    for n in (100, 200, 400):
        found = build_plan(check_graphs(molecule_like(n)), 1, 4, "adjacency")
        rows[n] = found.levels[-1].parent.numel()
        assert int(found.pool_count.sum()) == n * n
        assert found.pool_row.numel() <= 20 * n
    assert rows[400] < 30 * 16 and rows[400] == rows[200]  # chains with a ring every 8 nodes repeat


def test_equal_graphs_share_their_rows() -> None:
    edges, n = molecule_like(30), 30
    alone = build_plan(check_graphs(edges), 3, 4, "sym_laplacian")
    data = batch_of((edges, n), (edges, n))
    together = build_plan(check_graphs(data.edge_index, data.batch), 3, 4, "sym_laplacian")
    apart = build_plan(check_graphs(data.edge_index, data.batch), 3, 4, "sym_laplacian", separate=True)
    sizes = [[level.parent.numel() for level in p.levels] for p in (alone, together, apart)]
    assert sizes[0] == sizes[1] and sizes[2] == [2 * size for size in sizes[0]]


def test_multiplicities_count_all_pairs_in_every_layer() -> None:
    for edges, batch in BATCHES.values():
        graphs = check_graphs(edges, batch)
        rows = QuotientRows(build_plan(graphs, 3, 3, "random_walk"), "random_walk", torch.float64, graphs)
        for layer in rows.layers:
            assert int(layer.multiplicity.sum()) == int((graphs.sizes**2).sum())
            assert bool((layer.multiplicity > 0).all())


def test_taps_of_merged_rows_are_those_of_the_pairs() -> None:
    """Counted pair by pair: the taps of each pair's row are S^k e_m [v]."""
    for (edges, batch), gso in product(BATCHES.values(), OPERATORS):
        graphs = check_graphs(edges, batch)
        rows = QuotientRows(build_plan(graphs, 4, 0, gso), gso, torch.float64, graphs)
        taps = rows.layers[0].taps(rows.signal, 4).squeeze(2)
        merged = rows.pool @ taps.square()
        dense = torch.zeros(len(batch), len(batch), dtype=torch.float64)
        dense.index_put_(
            (edges[1], edges[0]), torch.ones(edges.size(1), dtype=torch.float64), accumulate=True
        )
        S = oracle.dense_gso(gso, dense)
        for k in range(4):
            expected = torch.linalg.matrix_power(S, k).square().sum(1)
            torch.testing.assert_close(merged[:, k], expected)


def colours_by_hand(graphs: Graphs, rounds: int) -> list[set[tuple]]:
    """For every node and m the colour as a nested tuple, refined in plain Python; distinct ones per round."""
    edges = graphs.edge_index.T.tolist()
    found = []
    colour = {}
    for g in range(graphs.sizes.numel()):
        nodes = (graphs.graph == g).nonzero().flatten().tolist()
        colour |= {(v, m): (int(v == m),) for v in nodes for m in nodes}
    for _ in range(rounds):
        colour = {
            (v, m): (own, tuple(sorted(colour[u, m] for u, w in edges if w == v)))
            for (v, m), own in colour.items()
        }
        found.append(set(colour.values()))
    return found


@st.composite
def small_graphs(draw: st.DrawFn) -> Graphs:
    n = draw(st.integers(1, 5))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=9))
    if draw(st.booleans()):
        pairs += [(v, u) for u, v in pairs]
    return check_graphs(torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T, num_nodes=n)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(small_graphs(), st.integers(1, 4))
def test_as_many_rows_as_colours(graphs: Graphs, rounds: int) -> None:
    found = build_plan(graphs, 1, rounds, "adjacency")
    expected = [len(distinct) for distinct in colours_by_hand(graphs, rounds)]
    assert [level.parent.numel() for level in found.levels] == expected


def same(a: Plan, b: Plan) -> bool:
    return [level.parent.numel() for level in a.levels] == [level.parent.numel() for level in b.levels]


@pytest.mark.parametrize("bits", [0, 3])
def test_a_collision_is_noticed_and_undone(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """With hashes of a few bits everything collides, and the colours are the same."""
    graphs = check_graphs(random_graph(14, p=0.5))
    expected = build_plan(graphs, 2, 3, "sym_laplacian")
    original, calls = colours.hash_rows, []

    def poor(first: Tensor, rest: Tensor) -> Tensor:
        calls.append(1)
        return original(first, rest) & ((1 << bits) - 1)

    monkeypatch.setattr(colours, "hash_rows", poor)
    found = build_plan(graphs, 2, 3, "sym_laplacian")
    assert calls
    assert same(found, expected)
    assert sorted(found.pool_count.tolist()) == sorted(expected.pool_count.tolist())


def test_regular_graphs_settle_and_share_their_level() -> None:
    """On a vertex-transitive graph rounds beyond its diameter tell nothing apart and cost nothing."""
    found = build_plan(check_graphs(circular_skip_link(3)), 1, 30, "adjacency")
    assert found.levels[-1] is found.levels[-2]
    module = build(num_layers=30, num_taps=1, norm="layer", skip="none", hidden_dim=4)
    assert_merging_changes_nothing(module, circular_skip_link(3), torch.zeros(41, dtype=torch.long))


def test_too_large_a_graph_says_so_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    big = torch.tensor([[0, 20_000], [20_000, 0]])
    with pytest.raises(ValueError, match=r"largest has 20001 nodes.*R-PEARL"):
        BPEARL(dim_pe=2)(big)
    monkeypatch.setattr(plan, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"GiB.*R-PEARL"):
        BPEARL(dim_pe=2)(molecule_like(30))


def merges(module: BPEARL, graphs: Graphs) -> bool:
    rows = kernels.pair_rows(module.phi, graphs, module.gso, torch.float32, module.quotient, False)
    return isinstance(rows, QuotientRows) and rows.plan.refined


def test_pairs_out_of_reach_are_left_out_where_merging_does_not_pay() -> None:
    def rows(num_taps: int, size: int, norm: str = "batch") -> QuotientRows | PairRows:
        module = BPEARL(28, hidden_dim=32, num_layers=1, num_taps=num_taps, norm=norm)
        return kernels.pair_rows(
            module.phi, check_graphs(molecule_like(size)), module.gso, torch.float32, None, False
        )

    listed = rows(7, 150)
    assert isinstance(listed, QuotientRows) and not listed.plan.refined and listed.num_rows < 150**2 / 3
    assert isinstance(rows(7, 20), PairRows) and isinstance(rows(7, 150, "graph"), PairRows)


def test_other_stacks_see_all_pairs() -> None:
    graphs = check_graphs(molecule_like(40))
    assert merges(BPEARL.from_phi(Phi([TapLayer(1, 1, 5)]), quotient=True), graphs)
    assert not merges(BPEARL.from_phi(Phi([TapLayer(1, 1, 5), TapLayer(1, 1, 5)]), quotient=True), graphs)


def test_pairs_are_merged_where_it_pays() -> None:
    """Graphs larger than the layers reach; all pairs otherwise."""
    large, small = check_graphs(molecule_like(40)), check_graphs(molecule_like(12))
    module = BPEARL(4, num_layers=4, num_taps=3)  # six rounds
    assert merges(module, large) and not merges(module, small)
    assert not merges(BPEARL(4, quotient=False), large)
    assert merges(BPEARL(4, quotient=True), small)
    weighted = check_graphs(molecule_like(40), edge_weight=torch.ones(molecule_like(40).size(1)))
    assert not merges(BPEARL(4, quotient=True), weighted)


@pytest.mark.parametrize(
    ("sizes", "expected"),  # as measured on batches of ZINC: (K, L, F)
    [
        *(((1, 4, 32), True), ((1, 9, 40), True), ((7, 8, 105), True)),
        *(((8, 4, 32), False), ((8, 6, 32), False), ((20, 4, 32), False)),
    ],
)
def test_merging_is_chosen_where_it_was_measured_to_be_faster(
    sizes: tuple[int, int, int], expected: bool
) -> None:
    num_taps, num_layers, width = sizes
    module = BPEARL(28, hidden_dim=width, num_layers=num_layers, num_taps=num_taps)
    assert merges(module, check_graphs(molecule_like(24))) is expected


def test_no_nodes() -> None:
    assert BPEARL(dim_pe=2, num_taps=3)(torch.empty(2, 0, dtype=torch.long), num_nodes=0).shape == (0, 2)
