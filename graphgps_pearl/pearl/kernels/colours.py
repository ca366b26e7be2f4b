r"""Colours of pairs (node :math:`v`, basis vector :math:`m`): equal colours, equal values in :math:`\Phi`.

Colour refinement, from integers and exact:

.. math:: c_{r+1}(v, m) = \big(c_r(v, m),\ \{c_r(u, m) : u \to v\}\big)

with :math:`\{\}` a multiset. Colours are numbered from 0; a round is done for all nodes of one in-degree at a
time, whose neighbours' colours are a matrix with sorted rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgps_pearl.pearl.signals import mix

_EXCHANGED = 6  # most neighbours that are sorted by exchanging


@dataclass(frozen=True)
class Level:
    """The colours of one round in terms of those of the round before.

    Attributes:
        parent: a colour's own colour one round earlier, :obj:`[C]`.
        degree: how many neighbours a pair of this colour has, :obj:`[C]`.
        neighbour: the colours of these neighbours one round earlier, one colour's after the other's,
            :obj:`[E]`.
    """

    parent: Tensor
    degree: Tensor
    neighbour: Tensor


@dataclass(frozen=True)
class Block:
    """The items with d neighbours: their indices :obj:`[P]`, and those of their neighbours :obj:`[d, P]`."""

    item: Tensor
    neighbour: Tensor


def number(key: Tensor) -> tuple[Tensor, Tensor]:
    """A number for each key, equal for equal keys, :obj:`[P]`, and a representative of each, :obj:`[C]`."""
    _, colour = torch.unique(key, return_inverse=True)
    count = int(colour.max()) + 1 if colour.numel() else 0
    return colour, _representative(colour, count)


def _representative(colour: Tensor, count: int) -> Tensor:
    item = torch.empty(count, dtype=torch.long, device=colour.device)
    return item.scatter_(0, colour, torch.arange(colour.numel(), device=colour.device))


def refine(colour: Tensor, count: int, blocks: list[Block]) -> tuple[Tensor, int, Level]:
    """One round: the new colours, their number, and the level that defines them.

    >>> ends, inner = torch.tensor([0, 3]), torch.tensor([1, 2])
    >>> path = [Block(ends, torch.tensor([[1, 2]])), Block(inner, torch.tensor([[0, 1], [2, 3]]))]
    >>> colour, count, level = refine(torch.zeros(4, dtype=torch.long), 1, path)
    >>> colour.tolist(), count, level.degree.tolist()
    ([0, 1, 1, 0], 2, [1, 2])
    """
    new, offset = torch.empty_like(colour), 0
    parents, degrees, neighbours = [], [], []
    for block in blocks:
        own = colour.index_select(0, block.item)
        around = sort_columns(colour.index_select(0, block.neighbour.view(-1)).view(block.neighbour.shape))
        new_colour, item = number_rows(own, around, count)
        new.scatter_(0, block.item, new_colour + offset)
        offset += item.numel()
        parents.append(own.index_select(0, item))
        degrees.append(torch.full_like(item, len(around)))
        neighbours.append(_rows(around, item))
    level = Level(_join(parents, colour), _join(degrees, colour), _join(neighbours, colour))
    return new, offset, level


def _join(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.cat(parts) if parts else like.new_empty(0)


def _rows(columns: Sequence[Tensor], item: Tensor) -> Tensor:
    """The entries of some rows, one row's after the other's."""
    if not len(columns):
        return item.new_empty(0)
    return torch.stack([column.index_select(0, item) for column in columns], dim=1).view(-1)


def sort_columns(columns: Tensor) -> Sequence[Tensor]:
    """``columns`` :obj:`[d, P]` with every one of the P sets of d sorted.

    Few are sorted by exchanging neighbours, which is ten times as fast as torch's sort along a short side.

    >>> [column.tolist() for column in sort_columns(torch.tensor([[2, 0], [3, 5], [1, 4]]))]
    [[1, 0], [2, 4], [3, 5]]
    """
    if len(columns) > _EXCHANGED:
        return columns.sort(dim=0).values.unbind(0)
    ordered = list(columns.unbind(0))
    for last in range(len(ordered) - 1, 0, -1):
        for i in range(last):
            first, second = ordered[i], ordered[i + 1]
            ordered[i], ordered[i + 1] = torch.minimum(first, second), torch.maximum(first, second)
    return ordered


def number_rows(first: Tensor, rest: Sequence[Tensor], count: int) -> tuple[Tensor, Tensor]:
    """:func:`number` for P rows of 1 + d integers below ``count``, given as columns.

    A row is packed into one integer where it fits. Otherwise rows are hashed, and every row is compared with
    its representative; should two different rows share a hash, they are numbered column by column instead.
    """
    bits = max(count - 1, 1).bit_length()
    if bits * (1 + len(rest)) <= 62:
        key = first
        for column in rest:
            key = (key << bits) | column
        return number(key)
    colour, item = number(hash_rows(first, rest))
    alike = item.index_select(0, colour)
    if all(torch.equal(column.index_select(0, alike), column) for column in (first, *rest)):
        return colour, item
    colour = first
    for column in rest:
        colour, item = number(colour * count + column)
    return colour, item


def hash_rows(first: Tensor, rest: Sequence[Tensor]) -> Tensor:
    """64 bits of every row (first, rest), :obj:`[P]`."""
    key = mix(first + 1)
    for column in rest:
        key = mix(key * 31 + column)
    return key
