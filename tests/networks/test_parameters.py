"""Parameter counts against upstream GraphGPS's, part by part."""

from __future__ import annotations

import pytest
import torch
from helpers.network_configs import PEPTIDES, ZINC, make
from torch import nn
from torch_geometric.nn.aggr import DegreeScalerAggregation

from graphgps_pearl import networks
from graphgps_pearl.errors import ConfigError


def _total(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def test_zinc_with_rwse_has_upstreams_423717() -> None:
    model = networks.build(make(ZINC), 1, 1)
    assert networks.count_parameters(model) == {
        "encoder": 1892,
        "local": 84480,
        "attention": 167680,
        "feed-forward": 167040,
        "head": 2625,
    }
    assert _total(model) == 423_717


def test_zinc_without_encoding_has_upstreams_423873() -> None:
    model = networks.build(make(ZINC, "dataset.node_encoder_name", "TypeDictNode"), 1, 1)
    assert _total(model) == 423_873


def test_peptides_has_upstreams_504539_but_for_the_last_edge_norm() -> None:
    # Upstream normalises the edges of the last GatedGCN layer too, and nobody reads them: 2·96 parameters
    # that never get a gradient.
    model = networks.build(make(PEPTIDES), 9, 11)
    assert _total(model) == 504_539 - 2 * 96
    assert networks.count_parameters(model)["local"] == 4 * (5 * (96 * 96 + 96) + 6 * 96) - 2 * 96


@pytest.mark.parametrize(
    ("layer", "per_layer", "spared"),
    [
        ("gineconv", 2 * (138 * 138 + 138), 0),
        ("gatedgcnconv", 5 * (138 * 138 + 138) + 4 * 138, 2 * 138),
    ],
)
def test_custom_gnn_has_upstreams_parameters(layer: str, per_layer: int, spared: int) -> None:
    words = ("model.type", "custom_gnn", "gnn.layer_type", layer, "gnn.layers_mp", 5, "gnn.dim_inner", 138)
    cfg = make(PEPTIDES, *words, "dataset.node_encoder_name", "Atom", "gt.dim_hidden", 138)
    counts = networks.count_parameters(networks.build(cfg, 9, 11))
    assert counts["local"] == 5 * per_layer - spared
    assert counts["head"] == 138 * 11 + 11


def test_parts_add_up_to_all_trainable_parameters() -> None:
    model = networks.build(make(ZINC, "gnn.layers_pre_mp", 1), 1, 1)
    counts = networks.count_parameters(model)
    assert counts["other"] == 64 * 64 + 2 * 64
    assert sum(counts.values()) == _total(model)
    model.encoder.requires_grad_(False)
    assert networks.count_parameters(model)["encoder"] == 0
    assert list(counts) == list(networks.PARTS)


def test_a_foreign_network_is_counted_by_graphgyms_names() -> None:
    class Foreign(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.middle, self.post_mp = nn.Linear(2, 3), nn.Linear(3, 3), nn.Linear(3, 1)
            self.tied = self.middle

    counts = networks.count_parameters(Foreign())
    assert counts == {
        "encoder": 9,
        "local": 0,
        "attention": 0,
        "feed-forward": 0,
        "head": 4,
        "other": 12,
    }


def test_degrees_reach_every_pna_layer() -> None:
    cfg = make(ZINC, "gt.layer_type", "PNA+None", "gt.layers", 2)
    model = networks.build(cfg, 1, 1)
    networks.set_degrees(model, torch.tensor([0, 2, 2]))
    scalers = [module for module in model.modules() if isinstance(module, DegreeScalerAggregation)]
    assert len(scalers) == 2
    for scaler in scalers:
        assert scaler.avg_deg_lin.item() == pytest.approx(1.5)
        assert scaler.avg_deg_log.item() == pytest.approx((torch.log(torch.tensor(6.0)) / 2).item())
    given = networks.build(make(ZINC, "gt.layer_type", "PNA+None", "gt.pna_degrees", [0, 2, 2]), 1, 1)
    scaler = next(module for module in given.modules() if isinstance(module, DegreeScalerAggregation))
    assert scaler.avg_deg_lin.item() == pytest.approx(1.5)
    with pytest.raises(ConfigError, match=r"gt\.pna_degrees"):
        networks.set_degrees(model, [])
