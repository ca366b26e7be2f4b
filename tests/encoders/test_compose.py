"""``A+B+C``: GraphGPS's widths, every combination, third parties, and errors that help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
import torch
from helpers.encoding_cases import NUM_TYPES, batch_of, encoder_config, graphs
from torch import nn
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg as active_cfg

from graphgps_pearl import config
from graphgps_pearl.config.schema import SCHEMA
from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.encoders import (
    DATA_ENCODERS,
    POSITIONAL_ENCODERS,
    ComposedNodeEncoder,
    FeatureEncoder,
    injected_dim,
    required_transforms,
)
from graphgps_pearl.errors import ConfigError


def columns_of(data: list, encoder: str) -> int:  # type: ignore[type-arg]
    """Give the graphs node features of the kind the data encoder reads; the number of columns."""
    for graph in data:
        if encoder == "Atom":
            graph.x = graph.x.expand(-1, 9) % 2
        elif encoder == "ASTNode":
            graph.x = graph.x.expand(-1, 3)
        elif encoder == "LinearNode":
            graph.x = torch.randn(graph.num_nodes, 3)
    return data[0].x.size(1)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("data_encoder", DATA_ENCODERS)
def test_every_composition_builds_and_runs(data_encoder: str, number: int) -> None:
    sets = {frozenset(names) for names in permutations(POSITIONAL_ENCODERS, number)}
    wide = ("gnn.dim_inner", 64, "gt.dim_hidden", 64)
    everything = encoder_config("+".join(("TypeDictNode", *POSITIONAL_ENCODERS)), *wide)
    data = graphs(required_transforms(everything))
    dim_in = columns_of(data, data_encoder)
    batch = Batch.from_data_list(data)
    config.activate(everything, dim_in=dim_in)
    for names in sets:
        encoder = ComposedNodeEncoder("+".join((data_encoder, *sorted(names))), 64)
        result = encoder(batch.clone())
        assert result.x.shape == (batch.num_nodes, 64) and torch.isfinite(result.x).all(), names


def test_widths_are_those_of_graphgps() -> None:
    cfg = encoder_config("TypeDictNode+LapPE+RWSE+BPEARL", "gnn.dim_inner", 64, "gt.dim_hidden", 64)
    parts = FeatureEncoder(cfg, 1).node_encoder.encoders
    assert parts[0].encoder.weight.shape == (NUM_TYPES, 64 - 4 - 5 - 6)
    assert all(part.linear_x is None for part in parts[1:])
    batch = batch_of(graphs(required_transforms(cfg)))
    widths = []
    for part in parts:
        batch = part(batch)
        widths.append(batch.x.size(1))
    assert widths == [49, 53, 58, 64]


def test_edge_encodings_and_injected_ones_take_no_columns() -> None:
    cfg = encoder_config("TypeDictNode+EquivStableLapPE+RWSE", "posenc_RWSE.inject", "every_layer")
    encoder = FeatureEncoder(cfg, 1)
    assert encoder.node_encoder.encoders[0].encoder.weight.shape == (NUM_TYPES, 32)
    batch = encoder(batch_of(graphs(required_transforms(cfg))))
    assert batch.pe_EquivStableLapPE.shape == (batch.num_nodes, 32)
    assert EncoderOutput.of(batch).per_layer.shape == (batch.num_nodes, 5)


def test_injected_encodings_stand_side_by_side() -> None:
    settings = ("posenc_RWSE.inject", "every_layer", "posenc_BPEARL.inject", "every_layer")
    cfg = encoder_config("TypeDictNode+RWSE+LapPE+BPEARL", *settings)
    assert injected_dim(cfg) == 5 + 6
    batch = FeatureEncoder(cfg, 1)(batch_of(graphs(required_transforms(cfg))))
    assert torch.equal(EncoderOutput.of(batch).per_layer, torch.cat([batch.pe_RWSE, batch.pe_BPEARL], dim=1))
    assert injected_dim(encoder_config("TypeDictNode+RWSE")) == 0
    assert injected_dim(encoder_config("TypeDictNode", "dataset.node_encoder", False)) == 0


def test_required_transforms_are_named_once_and_only_for_what_is_named() -> None:
    assert required_transforms(encoder_config("TypeDictNode+BPEARL+RPEARL+RandomID")) == []
    assert required_transforms(encoder_config("TypeDictNode", "dataset.node_encoder", False)) == []
    texts = [repr(t) for t in required_transforms(encoder_config("TypeDictNode+RWSE+LapPE+SignNet+SPE"))]
    assert len(texts) == len(set(texts)) == 4
    changed = required_transforms(
        encoder_config("TypeDictNode+RWSE", "posenc_RWSE.kernel.times_func", "range(1,4)")
    )
    assert repr(changed[0]) not in texts


@pytest.mark.parametrize(
    ("composition", "message"),
    [
        ("TypeDictNode+BPERL", "did you mean BPEARL"),
        ("Nonsense", "there are ASTNode, Atom, BPEARL, "),
        ("RWSE+TypeDictNode", "TypeDictNode reads the data, so it comes first"),
        ("Atom+TypeDictNode", "there is at most one such"),
    ],
)
def test_names_that_do_not_compose_say_why(composition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        FeatureEncoder(encoder_config(composition), 1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("composition", ["RWSE++LapPE", "", "TypeDictNode+RWSE+RWSE"])
def test_malformed_names(composition: str) -> None:
    config.activate(encoder_config("TypeDictNode"))
    with pytest.raises(ConfigError, match=r"dataset\.node_encoder_name is"):
        ComposedNodeEncoder(composition, 32)


def test_an_unknown_edge_encoder_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"dataset\.edge_encoder_name: .*did you mean Bond\?"):
        FeatureEncoder(encoder_config("TypeDictNode", "dataset.edge_encoder_name", "Bonds"), 1)


def test_more_columns_than_there_are_is_a_value_error() -> None:
    config.activate(encoder_config("TypeDictNode"))
    for composition in ("TypeDictNode+RWSE+BPEARL", "RWSE+BPEARL", "TypeDictNode+BPEARL"):
        with pytest.raises(ValueError, match=r"dim_pe"):
            ComposedNodeEncoder(composition, 5)
    with pytest.raises(ConfigError, match="leave too few"):
        ComposedNodeEncoder("TypeDictNode+BPEARL", 6)  # none left for the data


@pytest.fixture
def third_party() -> Iterator[None]:
    """Two encoders as other people would register them, with a config group; taken out again afterwards."""

    @register.register_node_encoder("Degree")
    class Degree(nn.Module):
        def __init__(self, dim_emb: int, expand_x: bool = True) -> None:
            super().__init__()
            self.linear = nn.Linear(1, active_cfg.posenc_Degree.dim_pe)

        def forward(self, batch: Batch) -> Batch:
            degree = torch.bincount(batch.edge_index[0], minlength=batch.num_nodes)[:, None].float()
            batch.x = torch.cat([batch.x, self.linear(degree)], dim=1)
            return batch

    @register.register_node_encoder("Zeros")
    class Zeros(nn.Module):
        def __init__(self, dim_emb: int) -> None:
            super().__init__()
            self.dim_emb = dim_emb

        def forward(self, batch: Batch) -> Batch:
            batch.x = torch.zeros(batch.num_nodes, self.dim_emb)
            return batch

    keys = {"enable": config.Key(False, "On."), "dim_pe": config.Key(3, "Columns.", min=1)}
    config.add_group("posenc_Degree", keys)
    yield
    for name in ("Degree", "Zeros"):
        del register.node_encoder_dict[name]
    for key in keys:
        del SCHEMA[f"posenc_Degree.{key}"]
    active_cfg.pop("posenc_Degree", None)


@pytest.mark.usefixtures("third_party")
def test_third_party_encoders_compose_like_ours() -> None:
    cfg = encoder_config("Zeros+Degree+BPEARL", "posenc_Degree.dim_pe", 7)
    batch = FeatureEncoder(cfg, 1)(batch_of(graphs()))
    assert batch.x.shape == (batch.num_nodes, 32)
    assert (batch.x[:, : 32 - 7 - 6] == 0).all() and batch.x[:, 32 - 7 - 6 :].any(dim=0).all()
    with pytest.raises(ConfigError, match="Zeros reads the data"):
        FeatureEncoder(encoder_config("TypeDictNode+Zeros"), 1)


@pytest.mark.usefixtures("third_party")
def test_a_name_that_somebody_else_took_is_theirs() -> None:
    register.node_encoder_dict["RandomID"] = taken = register.node_encoder_dict["Degree"]
    try:
        encoder = FeatureEncoder(encoder_config("TypeDictNode+RandomID"), 1)
        assert isinstance(encoder.node_encoder.encoders[1], taken)
    finally:
        del register.node_encoder_dict["RandomID"]


def test_the_example_in_the_documentation_works() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "encoders.md").read_text(encoding="utf-8")
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "Degree" in block]
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    try:
        exec(compile(example, "docs/encoders.md", "exec"), {})
        batch = FeatureEncoder(encoder_config("TypeDictNode+Degree+BPEARL"), 1)(batch_of(graphs()))
    finally:
        register.node_encoder_dict.pop("Degree", None)
    assert batch.x.shape == (batch.num_nodes, 32)
    degree = torch.bincount(batch.edge_index[0], minlength=batch.num_nodes)
    assert torch.equal(batch.x[:, 32 - 6 - 1], degree.float())


@pytest.mark.parametrize("name", ["HKdiagSE", "ElstaticSE"])
def test_encodings_of_graphgps_that_are_not_offered(name: str) -> None:
    """Their config groups are there, so that GraphGPS's files load."""
    cfg = encoder_config(f"TypeDictNode+{name}", f"posenc_{name}.model", "Linear")
    with pytest.raises(ConfigError, match=f"there is no encoder '{name}'"):
        required_transforms(cfg)
