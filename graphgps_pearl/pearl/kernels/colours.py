r"""Colours of pairs (node :math:`v`, basis vector :math:`m`): equal colours, equal values in :math:`\Phi`.

Colour refinement, from integers and exact:

.. math:: c_{r+1}(v, m) = \big(c_r(v, m),\ \{c_r(u, m) : u \to v\}\big)

with :math:`\{\}` a multiset. Colours are numbered from 0; a round is done for all nodes of one in-degree at a
time, whose neighbours' colours are a matrix with sorted rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgps_pearl.pearl.signals import mix


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
    """The items with d neighbours.

    ``item`` :obj:`[P]` are their indices, ``parent`` :obj:`[P]` the index of each in the round before, and
    ``neighbour`` :obj:`[P, d]` the indices of its neighbours there.
    """

    item: Tensor
    parent: Tensor
    neighbour: Tensor


def number(key: Tensor) -> tuple[Tensor, Tensor]:
    """A number for each key, equal for equal keys, :obj:`[P]`, and a representative of each, :obj:`[C]`."""
    _, colour = torch.unique(key, return_inverse=True)
    count = int(colour.max()) + 1 if colour.numel() else 0
    return colour, _representative(colour, count)


def _representative(colour: Tensor, count: int) -> Tensor:
    item = torch.empty(count, dtype=torch.long, device=colour.device)
    item[colour] = torch.arange(colour.numel(), device=colour.device)
    return item


def refine(colour: Tensor, count: int, blocks: list[Block]) -> tuple[Tensor, int, Level]:
    """One round: the new colours, their number, and the level that defines them.

    >>> ends, inner = torch.tensor([0, 3]), torch.tensor([1, 2])
    >>> path = [Block(ends, ends, torch.tensor([[1], [2]])),
    ...         Block(inner, inner, torch.tensor([[0, 2], [1, 3]]))]
    >>> colour, count, level = refine(torch.zeros(4, dtype=torch.long), 1, path)
    >>> colour.tolist(), count, level.degree.tolist()
    ([0, 1, 1, 0], 2, [1, 2])
    """
    new, offset = colour.new_empty(sum(block.item.numel() for block in blocks)), 0
    parents, degrees, neighbours = [], [], []
    for block in blocks:
        own, around = colour[block.parent], colour[block.neighbour].sort(dim=1).values
        new_colour, item = number_rows(own, around, count)
        new[block.item] = new_colour + offset
        offset += item.numel()
        parents.append(own[item])
        degrees.append(torch.full_like(item, around.size(1)))
        neighbours.append(around[item].flatten())
    level = Level(_join(parents, colour), _join(degrees, colour), _join(neighbours, colour))
    return new, offset, level


def _join(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.cat(parts) if parts else like.new_empty(0)


def number_rows(first: Tensor, rest: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """:func:`number` for rows (first, rest) :obj:`[P, 1 + d]` of integers below ``count``.

    A row is packed into one integer where it fits. Otherwise rows are hashed, and every row is compared with
    its representative; should two different rows share a hash, they are numbered column by column instead.
    """
    bits = max(count - 1, 1).bit_length()
    if bits * (1 + rest.size(1)) <= 62:
        key = first
        for column in rest.unbind(1):
            key = (key << bits) | column
        return number(key)
    colour, item = number(hash_rows(first, rest))
    alike = item[colour]
    if torch.equal(first[alike], first) and torch.equal(rest[alike], rest):
        return colour, item
    colour = first
    for column in rest.unbind(1):
        colour, item = number(colour * count + column)
    return colour, item


def hash_rows(first: Tensor, rest: Tensor) -> Tensor:
    """64 bits of every row (first, rest), :obj:`[P]`."""
    key = mix(first + 1)
    for column in rest.unbind(1):
        key = mix(key * 31 + column)
    return key
