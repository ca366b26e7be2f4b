"""Rules that modules without a config have too: both accept the same settings.

The config says them again because its errors come before torch is imported and name keys. A rule that only a
config can break stands in ``config/rules.py`` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from helpers.network_configs import SMALL, ZINC, make

from graphgps_pearl import BPEARL, RPEARL
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import build_gps_layer
from graphgps_pearl.vocabulary import GLOBAL_LAYERS, LOCAL_LAYERS, NORMS, PHI_ENDS, SKIPS

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
Case = tuple[dict[str, object], Callable[[], object]]


def words(encoding: str, **settings: object) -> dict[str, object]:
    named = {"dataset.node_encoder_name": f"TypeDictNode+{encoding}", f"posenc_{encoding}.dim_pe": 4}
    return named | {f"posenc_{encoding}.{key}": value for key, value in settings.items()}


def layers() -> list[Case]:
    def case(local: str, attention: str, heads: int, edges: bool) -> Case:
        settings = {
            "gt.layer_type": f"{local}+{attention}",
            "gt.n_heads": heads,
            "dataset.edge_encoder": edges,
        }
        width = 16 if edges else None
        return settings, lambda: build_gps_layer(16, local, attention, heads=heads, edge_dim=width)

    return [case(*values) for values in product(LOCAL_LAYERS, GLOBAL_LAYERS, (2, 3), (True, False))]


def pearl() -> list[Case]:
    def case(encoding: type[BPEARL | RPEARL], **settings: Any) -> Case:
        plain = {**settings, "chunk_size": settings.get("chunk_size") or None}
        plain = plain if encoding is RPEARL else settings

        def use() -> object:
            return encoding(4, **plain).train()(EDGES, num_nodes=3)

        return words(encoding.__name__, **settings), use

    cases: list[Case] = []
    for encoding, option in ((BPEARL, "tap_diagonal"), (RPEARL, "tap_moments")):
        grid = product((0, 1, 2), (0, 1), NORMS, (1, 4), (False, True))
        cases += [
            case(encoding, num_taps=k, num_layers=depth, norm=norm, hidden_dim=width, **{option: on})
            for k, depth, norm, width, on in grid
        ]
    for encoding in (BPEARL, RPEARL):
        ends = product(PHI_ENDS, (0, 1, 2), (0, 1), SKIPS, (4, 5))
        cases += [
            case(encoding, end=end, num_layers=depth, num_taps=k, skip=skip, hidden_dim=width)
            for end, depth, k, skip, width in ends
        ]
    chunks = product(NORMS, (0, 1, 3, 9))
    return cases + [case(RPEARL, norm=norm, chunk_size=size, num_samples=3) for norm, size in chunks]


@pytest.mark.parametrize("cases", [layers, pearl])
def test_the_config_and_the_modules_accept_the_same(cases: Callable[[], list[Case]]) -> None:
    def accepted(work: Callable[[], object]) -> bool:
        try:
            work()
        except (ConfigError, ValueError):
            return False
        return True

    seen = set()
    for settings, build in cases():
        overrides = [word for pair in settings.items() for word in pair]
        by_config = accepted(lambda w=overrides: make(ZINC, *SMALL, *w))
        assert by_config == accepted(build), settings
        seen.add(by_config)
    assert seen == {True, False}
