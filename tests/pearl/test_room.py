"""Memory that is used again: by one tensor at a time, and given back when nobody sees it."""

from __future__ import annotations

import torch

from graphgps_pearl.pearl.room import empty

LIKE = torch.ones(1)


def test_memory_is_used_again_once_it_is_free() -> None:
    first = empty(300, 1000, like=LIKE)
    where = first.data_ptr()
    part = first[5:7]
    del first
    assert empty(300, 1000, like=LIKE).data_ptr() != where  # somebody still sees a part of it
    del part
    assert empty(299, 1000, like=LIKE).data_ptr() == where


def test_two_tensors_never_share() -> None:
    tensors = [empty(300, 1000, like=LIKE).fill_(i) for i in range(4)]
    assert [float(tensor.sum()) for tensor in tensors] == [300_000.0 * i for i in range(4)]
    assert all(tensor.data_ptr() % 64 == 0 for tensor in tensors)


def test_a_graph_keeps_its_memory() -> None:
    x = empty(300, 1000, like=LIKE).fill_(2).requires_grad_()
    y = (x * x).sum()
    del x
    empty(300, 1000, like=LIKE).fill_(7)
    assert y.item() == 4 * 300_000
    y.backward()
    assert empty(3, like=LIKE).shape == (3,) and empty(2, 0, like=LIKE).numel() == 0
