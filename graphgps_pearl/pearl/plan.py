r"""The row quotient of B-PEARL: which of its :math:`\sum n^2` rows are equal, known from the graphs alone.

Two pairs (v, m) of the same colour (:mod:`~graphgps_pearl.pearl.colours`) carry the same values in
:math:`\Phi`, so one row stands for all of them. The start is the signal :math:`1[v = m]`, together with the
out-degree where the operator divides by it; :math:`K - 1` rounds give the colours on which the taps depend,
and each GIN layer is one more round. A :class:`Plan` holds for every round what a row's value is made of one
round earlier, and how often each row occurs at each node in the end.

A pair that the signal cannot have reached in all the rounds, because every walk from m to v is longer, has
the colours of a node that sees no signal at all. Such pairs are not listed: each node has one pair with
nobody, :math:`(v, \emptyset)`, that counts for all of them. What is listed grows with the number of pairs
within reach and not with :math:`n^2`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphgps_pearl.pearl.colours import Block, Level, number, refine
from graphgps_pearl.pearl.counter import mix
from graphgps_pearl.pearl.graphs import Graphs

MAX_PAIRS = 2**28  # n^2 summed over the graphs: the tables of a plan take five bytes for each
MAX_BYTES = 2**33  # that refinement may take, 24 bytes for each listed pair and each of its neighbours


@dataclass(frozen=True)
class Plan:
    """Rows that stand for all pairs, for a :math:`\\Phi` of K taps and L GIN layers.

    Rows are numbered from 0 in each round; round 0 is the signal, then come max(K - 1, 0) rounds for the taps
    and L for the GIN layers.

    Attributes:
        num_taps: K.
        num_layers: L.
        degrees: whether rows of different out-degree are kept apart, which some operators' taps need.
        separate: whether rows of different graphs are kept apart.
        signal: 1[v = m] of the rows of round 0, :obj:`[C_0]`.
        out_degree: edges that leave v, of the rows of round 0, :obj:`[C_0]`; 0 unless ``degrees``.
        levels: one for each round after the first.
        pool_size: for each node the number of different rows among its pairs, :obj:`[N]`.
        pool_row: these rows of the last round, one node's after the other's, :obj:`[Z]`.
        pool_count: how many of the node's pairs each of them stands for, :obj:`[Z]`.
        diagonal: the row of the last round of each pair (v, v), :obj:`[N]`.
        pair_row: the row of the last round of every pair, node by node in the order of m, :obj:`[sum n^2]`;
            made only where it is asked for.
        edges: of plans that were stored, a number for each graph that changes with its edges, :obj:`[B]`.
    """

    num_taps: int
    num_layers: int
    degrees: bool
    separate: bool
    signal: Tensor
    out_degree: Tensor
    levels: tuple[Level, ...]
    pool_size: Tensor
    pool_row: Tensor
    pool_count: Tensor
    diagonal: Tensor
    pair_row: Tensor | None = None
    edges: Tensor | None = None


def needs_degrees(num_taps: int, gso: str) -> bool:
    """Whether the taps divide by out-degrees. (In-degrees show in the number of neighbours.)"""
    return num_taps > 1 and gso not in ("adjacency", "laplacian")


def num_rounds(num_taps: int, num_layers: int) -> int:
    """How many steps the signal walks through the taps and the GIN layers."""
    return max(num_taps - 1, 0) + num_layers


def build_plan(
    graphs: Graphs, num_taps: int, num_layers: int, gso: str, separate: bool = False, keep_pairs: bool = False
) -> Plan:
    """The plan of a batch of graphs.

    ``separate`` keeps rows of different graphs apart; ``keep_pairs`` keeps the row of every pair.
    """
    rounds, degrees = num_rounds(num_taps, num_layers), needs_degrees(num_taps, gso)
    pairs = _Pairs(graphs, rounds)
    out_degree = torch.bincount(graphs.edge_index[0], minlength=graphs.num_nodes)
    if not degrees:
        out_degree = torch.zeros_like(out_degree)
    start = 2 * out_degree[pairs.node] + pairs.signal
    if separate:
        start = start + graphs.graph[pairs.node] * (2 * int(out_degree.max()) + 2 if start.numel() else 0)
    colour, item = number(start)
    signal, out_degree, count = pairs.signal[item], out_degree[pairs.node[item]], item.numel()
    levels: list[Level] = []
    blocks = pairs.blocks(graphs) if rounds else []
    for _ in range(rounds):
        if len(levels) > 1 and levels[-1].parent.numel() == levels[-2].parent.numel():
            levels.append(_again(levels[-1]))  # nothing was told apart: nothing ever will be
            continue
        colour, count, level = refine(colour, count, blocks)
        levels.append(level)
    pool = _pool(pairs, colour, count, graphs.num_nodes)
    diagonal = colour[pairs.diagonal]
    pair_row = colour[pairs.all()] if keep_pairs else None
    plan = Plan(
        num_taps, num_layers, degrees, separate, signal, out_degree, tuple(levels), *pool, diagonal, pair_row
    )
    return _without_unused(plan, colour, pairs.weight, count)


def merge_plan(plan: Plan) -> Plan:
    """Merge equal rows of different graphs: refinement of the rows themselves, which are fewer than pairs."""
    if not plan.separate:
        return plan
    colour, item = number(2 * plan.out_degree + plan.signal)
    signal, out_degree, count = plan.signal[item], plan.out_degree[item], item.numel()
    levels: list[Level] = []
    for level in plan.levels:
        colour, count, merged = refine(colour, count, _blocks_of(level))
        levels.append(merged)
    return replace(
        plan,
        separate=False,
        signal=signal,
        out_degree=out_degree,
        levels=tuple(levels),
        pool_row=colour[plan.pool_row],
        diagonal=colour[plan.diagonal],
        pair_row=None if plan.pair_row is None else colour[plan.pair_row],
    )


def _blocks_of(level: Level) -> list[Block]:
    """A level's rows by their numbers of neighbours."""
    first = level.degree.cumsum(0) - level.degree
    blocks = []
    for d in torch.unique(level.degree).tolist():
        item = (level.degree == d).nonzero().squeeze(1)
        entry = first[item].unsqueeze(1) + torch.arange(d, device=item.device)
        blocks.append(Block(item, level.parent[item], level.neighbour[entry]))
    return blocks


def _again(level: Level) -> Level:
    """The level after one that renamed the colours and told none apart (the same one, if it renamed none)."""
    own = torch.arange(level.parent.numel(), device=level.parent.device)
    if torch.equal(level.parent, own):
        return level
    renamed = torch.empty_like(level.parent)
    renamed[level.parent] = own
    return Level(own, level.degree, renamed[level.neighbour])


def check_number(graphs: Graphs) -> None:
    """Raise a :class:`ValueError` where there are more pairs of nodes than B-PEARL can hold."""
    total = int(graphs.sizes.square().sum())
    if total > MAX_PAIRS:
        raise ValueError(
            f"B-PEARL on {total:.3g} pairs of nodes (n^2 for each graph, the largest has "
            f"{int(graphs.sizes.max())} nodes) is more than the {MAX_PAIRS:.3g} it is made for; "
            f"use smaller batches, or R-PEARL, whose cost is linear in the nodes"
        )


class _Pairs:
    """The pairs within reach, then one pair :math:`(v, \\emptyset)` for each node.

    Attributes:
        node: v, :obj:`[P + N]`.
        signal: 1[v = m].
        weight: how many pairs it stands for; 0 for :math:`(v, \\emptyset)` if all pairs of v are listed.
        diagonal: where (v, v) is listed, :obj:`[N]`.
    """

    def __init__(self, graphs: Graphs, rounds: int) -> None:
        check_number(graphs)
        size = graphs.node_sizes
        total = int(size.sum())
        self._first = size.cumsum(0) - size  # [N] where the pairs of each node begin, were all of them listed
        device = size.device
        nodes = torch.arange(graphs.num_nodes, device=device)
        self._place = torch.full((total,), -1, dtype=torch.int32, device=device)
        code = self._reach(graphs, rounds)
        self._place[code] = torch.arange(code.numel(), dtype=torch.int32, device=device)
        node = torch.bucketize(code, self._first, right=True) - 1
        self._basis = torch.cat([code - self._first[node], torch.full_like(nodes, -1)])
        self.node = torch.cat([node, nodes])
        self.signal = (self._basis == graphs.position[self.node]).long()
        self.diagonal = self._place[self._first + graphs.position].long()
        listed = torch.bincount(node, minlength=graphs.num_nodes)
        self.weight = torch.cat([torch.ones_like(code), size - listed])

    def _reach(self, graphs: Graphs, rounds: int) -> Tensor:
        """The pairs (v, m) with a walk of at most so many steps from m to v, by their place among all."""
        source, target = graphs.edge_index[:, graphs.edge_index[0].argsort()]
        leaving = torch.bincount(source, minlength=graphs.num_nodes)
        first_edge = leaving.cumsum(0) - leaving
        node = torch.arange(graphs.num_nodes, device=target.device)
        basis = graphs.position
        mark = self._place
        found = [self._first + basis]
        mark[found[0]] = 0
        for _ in range(rounds):
            edge = _ranges(first_edge[node], leaving[node])
            basis = basis.repeat_interleave(leaving[node])
            node = target[edge]
            code = self._first[node] + basis
            new = (mark[code] < 0).nonzero().squeeze(1)
            node, basis, code = node[new], basis[new], code[new]
            if not code.numel():
                break
            ticket = torch.arange(code.numel(), dtype=torch.int32, device=code.device)
            mark[code] = ticket  # of pairs found twice, one keeps its ticket
            once = (mark[code] == ticket).nonzero().squeeze(1)
            node, basis, code = node[once], basis[once], code[once]
            found.append(code)
        return torch.cat(found).sort().values

    def blocks(self, graphs: Graphs) -> list[Block]:
        """The pairs by the in-degree of their nodes, with the pairs (u, m) of the neighbours u."""
        source, target = graphs.edge_index
        source = source[target.argsort()]
        entering = torch.bincount(target, minlength=graphs.num_nodes)
        first_edge = entering.cumsum(0) - entering
        degree = entering[self.node]
        needed = 24 * (degree.numel() + int(degree.sum()))
        if needed > MAX_BYTES:
            raise ValueError(
                f"B-PEARL would need {needed / 2**30:.1f} GiB to find equal rows among {degree.numel():.3g} "
                f"pairs of nodes; use smaller batches, or R-PEARL, whose cost is linear in the nodes"
            )
        blocks = []
        for d in torch.unique(entering).tolist():
            item = (degree == d).nonzero().squeeze(1)
            edge = first_edge[self.node[item]].unsqueeze(1) + torch.arange(d, device=item.device)
            blocks.append(Block(item, item, self._at(source[edge], self._basis[item].unsqueeze(1))))
        return blocks

    def all(self) -> Tensor:
        """Where each of the n^2 pairs of every graph is listed, node by node in the order of m."""
        nodes = torch.arange(self._first.numel(), device=self._first.device)
        size = torch.cat([self._first, self._first.new_tensor([self._place.numel()])]).diff()
        nobody = self.node.numel() - self._first.numel() + nodes.repeat_interleave(size)
        return torch.where(self._place < 0, nobody, self._place.long())

    def _at(self, node: Tensor, basis: Tensor) -> Tensor:
        """Where the pair (node, basis) is listed, or else the node's pair with nobody."""
        listed = self.node.numel() - self._first.numel()
        nobody = listed + node
        if not listed:
            return nobody
        place = self._place[self._first[node] + basis.clamp(min=0)].long()
        return torch.where((basis < 0) | (place < 0), nobody, place)


def _ranges(start: Tensor, length: Tensor) -> Tensor:
    """``start[i], ..., start[i] + length[i] - 1`` for one i after the other."""
    before = length.cumsum(0) - length
    total = int(length.sum())
    return torch.arange(total, device=start.device) + (start - before).repeat_interleave(
        length, output_size=total
    )


def _pool(pairs: _Pairs, colour: Tensor, count: int, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each node the different colours of its pairs, and how often it has each."""
    counted = pairs.weight > 0
    entry, where = torch.unique(pairs.node[counted] * max(count, 1) + colour[counted], return_inverse=True)
    times = torch.zeros_like(entry).index_add_(0, where, pairs.weight[counted])
    size = torch.bincount(entry // max(count, 1), minlength=num_nodes)
    return size, entry % max(count, 1), times


def _without_unused(plan: Plan, colour: Tensor, weight: Tensor, count: int) -> Plan:
    """Leave out the rows that stand for no pair: pairs with nobody where everybody is within reach.

    (What a row with a pair is made of has pairs too: the neighbours of that pair.)
    """
    used = torch.zeros(count, dtype=torch.bool, device=colour.device)
    used[colour[weight > 0]] = True
    if bool(used.all()):
        return plan
    name = used.cumsum(0) - 1
    pool_row, diagonal = name[plan.pool_row], name[plan.diagonal]
    pair_row = None if plan.pair_row is None else name[plan.pair_row]
    levels: list[Level] = []
    for r in reversed(range(len(plan.levels))):
        level = plan.levels[r]
        if levels and level is plan.levels[r + 1]:
            levels.append(levels[-1])
            continue
        parent, degree = level.parent[used], level.degree[used]
        neighbour = level.neighbour[used.repeat_interleave(level.degree)]
        size = plan.levels[r - 1].parent.numel() if r else plan.signal.numel()
        used = torch.zeros(size, dtype=torch.bool, device=colour.device)
        used[parent] = True
        name = used.cumsum(0) - 1
        levels.append(Level(name[parent], degree, name[neighbour]))
    return replace(
        plan,
        signal=plan.signal[used],
        out_degree=plan.out_degree[used],
        levels=tuple(reversed(levels)),
        pool_row=pool_row,
        diagonal=diagonal,
        pair_row=pair_row,
    )


def fingerprint(graphs: Graphs) -> Tensor:
    """A number of each graph that changes with its edges and the names of its nodes, :obj:`[B]`."""
    u, v = graphs.position[graphs.edge_index]
    total = mix(graphs.sizes + 1)
    return total.index_add_(0, graphs.graph[graphs.edge_index[0]], mix(mix(u + 1) + v))


def check_plan(plan: Plan, graphs: Graphs, num_taps: int, num_layers: int, gso: str) -> None:
    """Raise a :class:`ValueError` unless the plan is for these graphs and this encoding."""
    if (plan.num_taps, plan.num_layers) != (num_taps, num_layers):
        raise ValueError(
            f"the graphs' plan is for num_taps={plan.num_taps}, num_layers={plan.num_layers}, the encoding "
            f"has num_taps={num_taps}, num_layers={num_layers}: apply BPEARLPlan with its settings"
        )
    if needs_degrees(num_taps, gso) and not plan.degrees:
        raise ValueError(f"the graphs' plan is for another operator than gso={gso!r}: apply BPEARLPlan again")
    fits = plan.pool_size.numel() == graphs.num_nodes
    if fits and plan.edges is not None:
        no_nodes = mix(torch.ones_like(plan.edges))  # graphs that batch does not name if they come last
        fits = torch.equal(plan.edges[plan.edges != no_nodes], fingerprint(graphs)[graphs.sizes > 0])
    if not fits:
        raise ValueError(
            "the graphs' plan is for other edges: apply BPEARLPlan after everything that changes edges"
        )
