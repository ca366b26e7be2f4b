"""Rows (node, slot) without padding."""

from __future__ import annotations

import torch
from helpers.encoding_cases import batch_of, encoder_config, graphs

from graphgps_pearl.encoders import FeatureEncoder, required_transforms
from graphgps_pearl.encoders.ragged import Pairs


def test_empty_slots_do_not_count() -> None:
    """A graph of three nodes has three eigenvectors; asking for more must not change what they give."""
    data = graphs()[4:5]
    results = []
    for limit in (3, 9):
        for name in ("LapPE", "SignNet", "SPE"):
            cfg = encoder_config(f"TypeDictNode+{name}", f"posenc_{name}.eigen.max_freqs", limit)
            torch.manual_seed(0)
            encoder = FeatureEncoder(cfg, 1).eval()
            prepared = [t(graph.clone()) for graph in data for t in required_transforms(cfg)]
            results.append(encoder(batch_of(prepared)).x)
    for few, many in zip(results[:3], results[3:], strict=True):
        torch.testing.assert_close(few, many)


def test_pairs_index_rows_without_padding() -> None:
    batch = torch.tensor([0, 0, 1, 3, 3, 3])  # the third graph is empty
    pairs = Pairs.of(batch, 4, 2)
    assert pairs.slots.tolist() == [2, 1, 0, 2]
    assert pairs.node.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5]
    assert pairs.slot.tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    edges = pairs.edges(torch.tensor([[0, 4], [1, 5]]))
    assert edges.tolist() == [[0, 1, 7, 8], [2, 3, 9, 10]]
    rows = torch.arange(11.0)[:, None]
    assert pairs.sum_slots(rows).flatten().tolist() == [1, 5, 4, 11, 15, 19]
    dense, mask = pairs.padded(rows, 3)
    assert mask.sum() == 11 and dense[2].flatten().tolist() == [4, 0, 0]
