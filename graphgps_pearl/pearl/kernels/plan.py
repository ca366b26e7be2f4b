r"""The row quotient of B-PEARL: which of its :math:`\sum n^2` rows are equal, known from the graphs alone.

Two pairs (v, m) of the same colour (:mod:`~graphgps_pearl.pearl.kernels.colours`) carry the same values in
:math:`\Phi`, so one row stands for all of them. The start is the signal :math:`1[v = m]`, together with the
out-degree where the operator divides by it; :math:`K - 1` rounds give the colours on which the taps depend,
and each GIN layer is one more round. A :class:`Plan` holds for every round what a row's value is made of one
round earlier, and how often each row occurs at each node in the end.

A pair that the signal does not reach in all the rounds, because every walk from m to v is longer, has the
colours of a node without any signal. Such pairs are not listed: each node has one empty pair,
:math:`(v, \emptyset)`, that stands for all of them. The list grows with the number of pairs within reach and
not with :math:`n^2`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.kernels.colours import Block, Level, number, refine

MAX_BYTES = 2**33  # of memory for the refinement: 24 bytes for each listed pair and each of its neighbours


@dataclass(frozen=True)
class Plan:
    """Rows that stand for all pairs, for a :math:`\\Phi` of K taps and L GIN layers.

    Rows are numbered from 0 in each round; round 0 is the signal, then come max(K - 1, 0) rounds for the taps
    and L for the GIN layers.

    Attributes:
        num_taps: K.
        num_layers: L.
        degrees: whether rows of different out-degree are different colours, as some operators need.
        separate: whether rows of different graphs are different colours.
        signal: 1[v = m] of the rows of round 0, :obj:`[C_0]`.
        out_degree: edges that leave v, of the rows of round 0, :obj:`[C_0]`; 0 unless ``degrees``.
        levels: one for each round after the first.
        pool_size: for each node the number of different rows among its pairs, :obj:`[N]`.
        pool_row: these rows of the last round, one node's after the other's, :obj:`[Z]`.
        pool_count: how many of the node's pairs each of them stands for, :obj:`[Z]`.
        diagonal: the row of the last round of each pair (v, v), :obj:`[N]`.
        pair_row: the row of the last round of every pair, node by node in the order of m, :obj:`[sum n^2]`;
            made only where it is asked for.
        refined: whether rows are merged by colour; else they are the same in every round.
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
    refined: bool = True


def needs_degrees(num_taps: int, gso: str) -> bool:
    """Whether the taps divide by out-degrees. (In-degrees show in the number of neighbours.)"""
    return num_taps > 1 and gso not in ("adjacency", "laplacian")


def num_rounds(num_taps: int, num_layers: int) -> int:
    """How many steps the signal walks through the taps and the GIN layers."""
    return max(num_taps - 1, 0) + num_layers


def build_plan(
    graphs: Graphs,
    num_taps: int,
    num_layers: int,
    gso: str,
    separate: bool = False,
    keep_pairs: bool = False,
    refined: bool = True,
) -> Plan:
    """The plan of a batch of graphs.

    ``separate`` never merges rows of different graphs; ``keep_pairs`` stores the row of every pair. Without
    ``refined`` no colours are looked for: every pair within reach has a row, and the empty pairs.
    """
    rounds, degrees = num_rounds(num_taps, num_layers), needs_degrees(num_taps, gso)
    pairs = _Pairs(graphs, rounds)
    out_degree = torch.bincount(graphs.edge_index[0], minlength=graphs.num_nodes)
    if not degrees:
        out_degree = torch.zeros_like(out_degree)
    if not refined:
        return _pairs_within_reach(
            graphs, pairs, rounds, out_degree, (num_taps, num_layers, degrees), keep_pairs
        )
    start = 2 * out_degree[pairs.node] + pairs.signal
    if separate:
        start = start + graphs.graph[pairs.node] * (2 * int(out_degree.max()) + 2 if start.numel() else 0)
    colour, item = number(start)
    signal, out_degree, count = pairs.signal[item], out_degree[pairs.node[item]], item.numel()
    levels: list[Level] = []
    blocks = pairs.blocks(graphs) if rounds else []
    for _ in range(rounds):
        if len(levels) > 1 and levels[-1].parent.numel() == levels[-2].parent.numel():
            levels.append(_repeated(levels[-1]))  # no colour was split: none will be in later rounds
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


def _pairs_within_reach(
    graphs: Graphs,
    pairs: _Pairs,
    rounds: int,
    out_degree: Tensor,
    depths: tuple[int, int, bool],
    keep_pairs: bool,
) -> Plan:
    """A row for every listed pair, the same in every round. Rows of empty pairs may stand for no pair."""
    row = torch.arange(pairs.node.numel(), device=out_degree.device)
    level = Level(row, *pairs.neighbours(graphs))
    pool = pairs.pool()
    return Plan(
        *depths,
        separate=False,
        signal=pairs.signal,
        out_degree=out_degree[pairs.node],
        levels=(level,) * rounds,
        pool_size=pool[0],
        pool_row=pool[1],
        pool_count=pool[2],
        diagonal=pairs.diagonal,
        pair_row=pairs.all() if keep_pairs else None,
        refined=False,
    )


def _repeated(level: Level) -> Level:
    """The level after one that split no colour: the same, in the new numbering."""
    own = torch.arange(level.parent.numel(), device=level.parent.device)
    if torch.equal(level.parent, own):
        return level
    renamed = torch.empty_like(level.parent)
    renamed[level.parent] = own
    return Level(own, level.degree, renamed[level.neighbour])


class _Pairs:
    """The pairs within reach, then one empty pair :math:`(v, \\emptyset)` for each node.

    Attributes:
        node: v, :obj:`[P + N]`.
        signal: 1[v = m].
        weight: multiplicity; 0 for :math:`(v, \\emptyset)` if all pairs of v are listed.
        diagonal: index of (v, v) in the list, :obj:`[N]`.
    """

    def __init__(self, graphs: Graphs, rounds: int) -> None:
        size = graphs.node_sizes
        total = int(size.sum())
        self._first = size.cumsum(0) - size  # [N] index of (v, 0) among all pairs
        device = size.device
        nodes = torch.arange(graphs.num_nodes, device=device)
        self._index = torch.full((total,), -1, dtype=torch.int32, device=device)
        code = self._reach(graphs, rounds)
        self._index.scatter_(0, code, torch.arange(code.numel(), dtype=torch.int32, device=device))
        node = nodes.repeat_interleave(size, output_size=total).index_select(0, code)
        self._basis = torch.cat([code - self._first.index_select(0, node), torch.full_like(nodes, -1)])
        self.node = torch.cat([node, nodes])
        self.signal = (self._basis == graphs.position.index_select(0, self.node)).long()
        self.diagonal = self._index.index_select(0, self._first + graphs.position).long()
        listed = torch.bincount(node, minlength=graphs.num_nodes)
        self.weight = torch.cat([torch.ones_like(code), size - listed])

    def _reach(self, graphs: Graphs, rounds: int) -> Tensor:
        """The pairs (v, m) with a walk of at most so many steps from m to v, as indices among all pairs."""
        source, target = graphs.edge_index[:, graphs.edge_index[0].argsort()]
        leaving = torch.bincount(source, minlength=graphs.num_nodes)
        first_edge = leaving.cumsum(0) - leaving
        node = torch.arange(graphs.num_nodes, device=target.device)
        basis = graphs.position
        mark = self._index
        found = [self._first + basis]
        mark[found[0]] = 0
        for _ in range(rounds):
            edges = leaving.index_select(0, node)
            edge = _ranges(first_edge.index_select(0, node), edges)
            basis = basis.repeat_interleave(edges, output_size=edge.numel())
            node = target.index_select(0, edge)
            code = self._first.index_select(0, node) + basis
            node, basis, code = _take((mark.index_select(0, code) < 0), node, basis, code)
            if not code.numel():
                break
            ticket = torch.arange(code.numel(), dtype=torch.int32, device=code.device)
            mark.scatter_(0, code, ticket)  # of a pair found twice, one keeps its ticket
            node, basis, code = _take(mark.index_select(0, code) == ticket, node, basis, code)
            found.append(code)
        return torch.cat(found).sort().values

    def neighbours(self, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """How many neighbours each pair has, and these, one pair's after the other's."""
        source, first_edge, degree = self._entering(graphs)
        around = source.index_select(0, _ranges(first_edge.index_select(0, self.node), degree))
        return degree, self._at(around, self._basis.repeat_interleave(degree, output_size=around.numel()))

    def _entering(self, graphs: Graphs) -> tuple[Tensor, Tensor, Tensor]:
        """The sources of the edges by target, each node's first edge, and the in-degree at each pair."""
        source, target = graphs.edge_index
        entering = torch.bincount(target, minlength=graphs.num_nodes)
        degree = entering.index_select(0, self.node)
        needed = 24 * (degree.numel() + int(degree.sum()))
        if needed > MAX_BYTES:
            raise ValueError(
                f"B-PEARL would need {needed / 2**30:.1f} GiB to find equal rows among {degree.numel():.3g} "
                f"pairs of nodes; use smaller batches, or R-PEARL, whose cost is linear in the nodes"
            )
        return source[target.argsort()], entering.cumsum(0) - entering, degree

    def blocks(self, graphs: Graphs) -> list[Block]:
        """The pairs by the in-degree of their nodes, with the pairs (u, m) of the neighbours u."""
        source, first_edge, degree = self._entering(graphs)
        blocks = []
        for d in torch.unique(degree).tolist():
            item = (degree == d).nonzero().squeeze(1)
            first = first_edge.index_select(0, self.node.index_select(0, item))
            edge = first + torch.arange(d, device=item.device).unsqueeze(1)
            around = source.index_select(0, edge.view(-1))
            basis = self._basis.index_select(0, item).repeat(d)
            blocks.append(Block(item, self._at(around, basis).view(d, item.numel())))
        return blocks

    def all(self) -> Tensor:
        """Index in the list of each of the n^2 pairs of every graph, node by node in the order of m."""
        nodes = torch.arange(self._first.numel(), device=self._first.device)
        size = torch.cat([self._first, self._first.new_tensor([self._index.numel()])]).diff()
        empty = self.node.numel() - self._first.numel() + nodes.repeat_interleave(size)
        return torch.where(self._index < 0, empty, self._index.long())

    def pool(self) -> tuple[Tensor, Tensor, Tensor]:
        """For each node its listed pairs, then its empty pair if that stands for any; and the counts."""
        num_nodes = self._first.numel()
        listed = self.node.numel() - num_nodes
        pair_node, empty = self.node[:listed], self.weight[listed:]
        has_empty = (empty > 0).long()
        listed_at = torch.bincount(pair_node, minlength=num_nodes)
        size = listed_at + has_empty
        before = has_empty.cumsum(0) - has_empty  # empty pairs of earlier nodes
        index = torch.arange(listed, device=pair_node.device)
        (node,) = _take(empty > 0, torch.arange(num_nodes, device=pair_node.device))
        place = torch.cat(
            [index + before.index_select(0, pair_node), (size.cumsum(0) - 1).index_select(0, node)]
        )
        pair = torch.cat([index, listed + node])
        row = torch.empty_like(pair).scatter_(0, place, pair)
        return size, row, self.weight.index_select(0, row)

    def _at(self, node: Tensor, basis: Tensor) -> Tensor:
        """Index in the list of the pair (node, basis), or else of the node's empty pair."""
        listed = self.node.numel() - self._first.numel()
        empty = listed + node
        if not listed:
            return empty
        index = self._index.index_select(0, self._first.index_select(0, node) + basis.clamp(min=0)).long()
        return torch.where((basis < 0) | (index < 0), empty, index)


def _take(which: Tensor, *columns: Tensor) -> list[Tensor]:
    """The entries of each column where ``which``."""
    index = which.nonzero().squeeze(1)
    return [column.index_select(0, index) for column in columns]


def _ranges(start: Tensor, length: Tensor) -> Tensor:
    """``start[i], ..., start[i] + length[i] - 1`` for one i after the other."""
    before = length.cumsum(0) - length
    total = int(length.sum())
    return torch.arange(total, device=start.device) + (start - before).repeat_interleave(
        length, output_size=total
    )


def _pool(pairs: _Pairs, colour: Tensor, count: int, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each node the different colours of its pairs, and how often it has each."""
    node, colour, weight = _take(pairs.weight > 0, pairs.node, colour, pairs.weight)
    entry, where = torch.unique(node * max(count, 1) + colour, return_inverse=True)
    times = torch.zeros_like(entry).scatter_add_(0, where, weight)
    size = torch.bincount(entry // max(count, 1), minlength=num_nodes)
    return size, entry % max(count, 1), times


def _without_unused(plan: Plan, colour: Tensor, weight: Tensor, count: int) -> Plan:
    """Drop the rows that stand for no pair: empty pairs where all pairs are within reach.

    (Rows that another row is computed from have pairs too: the neighbours of that row's pairs.)
    """
    used = torch.zeros(count, dtype=torch.bool, device=colour.device)
    used[_take(weight > 0, colour)[0]] = True
    if bool(used.all()):
        return plan
    name = used.cumsum(0) - 1
    pool_row, diagonal = name.index_select(0, plan.pool_row), name.index_select(0, plan.diagonal)
    pair_row = None if plan.pair_row is None else name.index_select(0, plan.pair_row)
    levels: list[Level] = []
    for r in reversed(range(len(plan.levels))):
        level = plan.levels[r]
        if levels and level is plan.levels[r + 1]:
            levels.append(levels[-1])
            continue
        parent, degree = _take(used, level.parent, level.degree)
        (neighbour,) = _take(
            used.repeat_interleave(level.degree, output_size=level.neighbour.numel()), level.neighbour
        )
        size = plan.levels[r - 1].parent.numel() if r else plan.signal.numel()
        used = torch.zeros(size, dtype=torch.bool, device=colour.device)
        used[parent] = True
        name = used.cumsum(0) - 1
        levels.append(Level(name.index_select(0, parent), degree, name.index_select(0, neighbour)))
    return replace(
        plan,
        signal=plan.signal[used],
        out_degree=plan.out_degree[used],
        levels=tuple(reversed(levels)),
        pool_row=pool_row,
        diagonal=diagonal,
        pair_row=pair_row,
    )
