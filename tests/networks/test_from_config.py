"""From config to network: names, third parties, edges nobody reads."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch
from helpers.network_configs import SMALL, ZINC, batch_of, make
from torch import nn
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.nn import SAGEConv, global_add_pool

from graphgps_pearl import config, networks
from graphgps_pearl.config.schema import put
from graphgps_pearl.errors import ConfigError


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("model.type", "GPSModell"), "model.type: there is no 'GPSModell'; did you mean 'GPSModel'?"),
        (("gnn.head", "san_grph"), "gnn.head: there is no 'san_grph'; did you mean 'san_graph'?"),
        (("model.graph_pooling", "avg"), "model.graph_pooling: there is no 'avg'; Known: add"),
        (("model.graph_pooling", "add+avg"), "model.graph_pooling: there is no 'avg'; Known: add"),
        (("gnn.act", "reul"), "gnn.act: there is no 'reul'; did you mean 'relu'?"),
        (
            ("model.type", "custom_gnn", "gnn.layer_type", "ginecon"),
            "gnn.layer_type: there is no 'ginecon'; did you mean 'gineconv'?",
        ),
        (
            ("model.type", "custom_gnn", "gnn.layer_type", "gineconv", "gnn.stage_type", "skipsumm"),
            "expected one of stack, skipsum",
        ),
        (("model.type", "gnn", "gnn.layer_type", "gineconv"), "gnn.layer_type: 'gineconv' is not registered"),
    ],
)
def test_names_that_do_not_exist(words: tuple[object, ...], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        networks.build(make(ZINC, *words), 1, 1)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def _unchecked(**groups: dict[str, object]) -> object:
    """A config past its own checks: what a GraphGym program may hand over."""
    cfg = make(ZINC, *SMALL)
    cfg.defrost()
    for group, values in groups.items():
        cfg[group].update(values)
    return cfg


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ({"gt": {"layer_type": "SANLayer"}}, "gt.layer_type = SANLayer: expected LOCAL+GLOBAL"),
        ({"gt": {"layer_type": "GINE+Transformer+X"}}, "expected LOCAL+GLOBAL"),
        ({"gt": {"layer_type": "GINE+BigBird"}}, "gt.layer_type = GINE+BigBird"),
        ({"gt": {"dim_hidden": 8}}, "gt.dim_hidden = 8: must equal gnn.dim_inner"),
        ({"gt": {"layer_norm": True, "batch_norm": True}}, "set one of them False"),
        ({"gt": {"n_heads": 3}}, "gt.n_heads = 3: must divide gt.dim_hidden"),
        ({"dataset": {"edge_encoder": False}}, "dataset.edge_encoder = False: GINE"),
        ({"dataset": {"node_encoder_num_types": 0}}, "dataset.node_encoder_num_types = 0"),
        ({"dataset": {"edge_encoder_name": "LinearEdge"}}, "dataset.edge_encoder_dim_in = 0: LinearEdge"),
        ({"gt": {"layer_type": "GINE+None", "attn_gate": "head"}}, "gt.attn_gate = head: acts on attention"),
        ({"gt": {"layer_type": "GINE+None", "degree_scaler": True}}, "gt.degree_scaler = True: acts on"),
        ({"gt": {"layer_type": "GIN+Transformer", "edge_update": True}}, "gt.edge_update = True: GIN"),
        ({"gt": {"layer_type": "CustomGatedGCN+None", "edge_update": True}}, "use GINE+None, or False"),
        (
            {
                "dataset": {"node_encoder_name": "TypeDictNode+EquivStableLapPE"},
                "model": {"type": "custom_gnn"},
                "gnn": {"layer_type": "gcnconv"},
            },
            "gnn.layer_type = gcnconv: EquivStableLapPE",
        ),
        (
            {"model": {"type": "custom_gnn"}, "gnn": {"layer_type": "generaledgeconv"}},
            "dataset.edge_dim = 128: must equal gnn.dim_inner = 16",
        ),
        (
            {"dataset": {"node_encoder": False, "node_encoder_name": "TypeDictNode"}},
            "nodes come 1 wide into layers that are 16 wide",
        ),
    ],
)
def test_impossible_networks(groups: dict[str, dict[str, object]], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        networks.build(_unchecked(**groups), 1, 1)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("encoder", "settings", "says"),
    [
        ("RWSE", {"model": "none"}, "posenc_RWSE.model = none: expected Linear or MLP"),
        ("RWSE", {"kernel.times_func": ""}, "posenc_RWSE.kernel.times = []"),
        ("LapPE", {"model": "none"}, "posenc_LapPE.model = none: expected DeepSet or Transformer"),
        ("LapPE", {"model": "Transformer", "n_heads": 3}, "posenc_LapPE.n_heads = 3: must divide"),
        ("SignNet", {"model": "none"}, "posenc_SignNet.model = none: expected DeepSet or MLP"),
        ("SignNet", {"post_layers": 0}, "posenc_SignNet.post_layers = 0: expected at least 1"),
        ("SignNet", {"model": "MLP", "eigen.max_freqs": 0}, "posenc_SignNet.eigen.max_freqs = 0"),
        ("SPE", {"model": "GNN"}, "posenc_SPE.model = GNN: expected MLP or DeepSet"),
        ("BPEARL", {"act": "swoosh"}, "posenc_BPEARL: unknown act"),
    ],
)
def test_encodings_that_a_graphgym_program_sets_up_wrongly(
    encoder: str, settings: dict[str, object], says: str
) -> None:
    cfg = make(
        ZINC, *SMALL, "dataset.node_encoder_name", f"TypeDictNode+{encoder}", f"posenc_{encoder}.dim_pe", 4
    )
    cfg.defrost()
    for key, value in settings.items():
        put(cfg, f"posenc_{encoder}.{key}", value)
    with pytest.raises(ConfigError) as caught:
        networks.build(cfg, 1, 1)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_an_edge_encoder_that_nobody_reads_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="graphgps_pearl")
    for local, read in (("GINE", True), ("GCN", False), ("GIN", False), ("None", False), ("PNA", True)):
        caplog.clear()
        model = networks.build(make(ZINC, *SMALL, "gt.layer_type", f"{local}+Transformer"), 1, 1)
        assert (model.encoder.edge_encoder is not None) == read
        assert bool(caplog.records) == (not read)


@pytest.mark.parametrize(
    "layer", ["generalconv", "generaledgeconv", "sageconv", "gineconv", "ginconv", "mlp"]
)
def test_every_parameter_of_message_passing_alone_gets_a_gradient(layer: str) -> None:
    words = ("model.type", "custom_gnn", "gnn.layer_type", layer, "dataset.edge_dim", 16)
    cfg = make(ZINC, *SMALL, *words)
    model = networks.build(cfg, 1, 1)
    model(batch_of(cfg))[0].sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_the_active_config_of_a_graphgym_program_is_taken_as_it_is() -> None:
    cfg = make(ZINC, *SMALL)
    config.activate(cfg)
    again = networks.build(active_cfg, 1, 1)
    assert (active_cfg.share.dim_in, active_cfg.share.dim_out) == (1, 1)
    assert sum(networks.count_parameters(again).values()) == sum(
        networks.count_parameters(networks.build(cfg, 1, 1)).values()
    )
    assert active_cfg.gt.dim_hidden == 16


def test_graphgyms_global_config_is_not_touched_for_our_own_parts() -> None:
    config.activate(make(ZINC, "gt.layers", 7))
    before = active_cfg.dump()
    cfg = make(
        ZINC, *SMALL, "dataset.node_encoder_name", "TypeDictNode+RWSE+BPEARL", "posenc_BPEARL.dim_pe", 4
    )
    text = cfg.dump()
    model = networks.build(cfg, 1, 1)
    model(batch_of(cfg))
    assert len(model.layers) == 2
    assert active_cfg.dump() == before
    assert cfg.dump() == text


@pytest.fixture
def third_party() -> Iterator[None]:
    """A network, a head, a pooling, an activation and a layer as another package registers them."""

    class Net(nn.Module):
        def __init__(self, dim_in: int, dim_out: int) -> None:
            super().__init__()
            self.post_mp = nn.Linear(dim_in, dim_out)
            self.width_from_config = active_cfg.gnn.dim_inner

    class Head(nn.Module):
        def __init__(self, dim_in: int, dim_out: int) -> None:
            super().__init__()
            self.linear = nn.Linear(dim_in, dim_out)
            self.outputs_from_config = active_cfg.share.dim_out

        def forward(self, batch: object) -> object:
            return self.linear(global_add_pool(batch.x, batch.batch)), batch.y  # type: ignore[attr-defined]

    class Layer(nn.Module):
        def __init__(self, layer_config: object, **kwargs: object) -> None:
            super().__init__()
            self.model = SAGEConv(layer_config.dim_in, layer_config.dim_out)  # type: ignore[attr-defined]

        def forward(self, batch: object) -> object:
            batch.x = self.model(batch.x, batch.edge_index)  # type: ignore[attr-defined]
            return batch

    additions = {
        "network_dict": Net,
        "head_dict": Head,
        "pooling_dict": lambda x, index: 2 * global_add_pool(x, index),
        "act_dict": nn.Tanh,
        "layer_dict": Layer,
    }
    for registry, thing in additions.items():
        getattr(register, registry)["theirs"] = thing
    yield
    for registry in additions:
        del getattr(register, registry)["theirs"]


@pytest.mark.usefixtures("third_party")
def test_third_parties_are_found_in_graphgyms_registry() -> None:
    network = networks.build(make(ZINC, "model.type", "theirs"), 5, 2)
    assert network.width_from_config == 64
    assert networks.count_parameters(network)["head"] == 12

    for words in (
        ("gnn.head", "theirs"),
        ("model.graph_pooling", "theirs"),
        ("gnn.act", "theirs"),
        ("model.type", "custom_gnn", "gnn.layer_type", "theirs", "dataset.edge_encoder", False),
        ("model.type", "custom_gnn", "gnn.layer_type", "theirs", "gnn.stage_type", "skipsum"),
    ):
        cfg = make(ZINC, *SMALL, *words)
        model = networks.build(cfg, 1, 1)
        prediction, target = model(batch_of(cfg))
        assert prediction.shape == target.shape == (4, 1)
    assert any(
        isinstance(m, nn.Tanh) for m in networks.build(make(ZINC, "gnn.act", "theirs"), 1, 1).modules()
    )
    assert networks.build(make(ZINC, "gnn.head", "theirs"), 1, 1).post_mp.outputs_from_config == 1


def test_graphgyms_own_layers_and_network_work() -> None:
    cfg = make(ZINC, *SMALL, "model.type", "custom_gnn", "gnn.layer_type", "sageconv")
    prediction, _ = networks.build(cfg, 1, 1)(batch_of(cfg))
    assert prediction.isfinite().all()


@pytest.mark.parametrize("encoder", ["TypeDictNode+RWSE", "TypeDictNode"])
def test_graphgyms_network_finds_our_parts_without_registration(
    monkeypatch: pytest.MonkeyPatch, encoder: str
) -> None:
    for registry in (register.node_encoder_dict, register.edge_encoder_dict, register.head_dict):
        for name in ("TypeDictNode+RWSE", "TypeDictNode", "RWSE", "TypeDictEdge", "san_graph"):
            monkeypatch.delitem(registry, name, raising=False)
    words = ("dataset.node_encoder_name", encoder, "posenc_RWSE.enable", "RWSE" in encoder)
    cfg = make(ZINC, *SMALL, "model.type", "gnn", "gnn.layer_type", "generalconv", *words)
    prediction, _ = networks.build(cfg, 1, 1)(batch_of(cfg))
    assert prediction.shape == (4, 1)


def test_the_same_seed_gives_the_same_network() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(0)
        states.append(networks.build(make(ZINC, *SMALL), 1, 1).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
