"""Registration: explicit, idempotent, only free names, and safe beside upstream GraphGPS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.graphgym import register as graphgym
from torch_geometric.graphgym.config import set_cfg
from yacs.config import CfgNode

import graphgps_pearl
from graphgps_pearl import config, encoders
from graphgps_pearl.errors import ConfigError

REPOSITORY = Path(__file__).resolve().parents[1]
REGISTRIES = [value for name, value in vars(graphgym).items() if name.endswith("_dict")]

# As upstream does it: names are claimed with GraphGym's decorator when the package is imported.
UPSTREAM = """
from torch_geometric.graphgym.register import register_config, register_node_encoder
from yacs.config import CfgNode

@register_config("posenc")
def groups(cfg):
    cfg.posenc_RWSE = CfgNode({"enable": False, "dim_pe": 16})

@register_node_encoder("RWSE")
class RWSE:
    pass

register_node_encoder("TypeDictNode", RWSE)
register_node_encoder("TypeDictNode+RWSE", RWSE)
"""


@pytest.fixture(autouse=True)
def registry_of_pyg_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """GraphGym's registry as PyG leaves it, a stand-in of upstream to import, and everything put back."""
    (tmp_path / "graphgps.py").write_text(UPSTREAM)
    monkeypatch.syspath_prepend(tmp_path)
    finders, contents = list(sys.meta_path), [dict(registry) for registry in REGISTRIES]
    sys.meta_path[:] = [f for f in finders if not type(f).__module__.startswith("graphgps_pearl")]
    for registry in REGISTRIES:
        for name in [n for n, m in registry.items() if not getattr(m, "__module__", "").startswith("torch")]:
            del registry[name]
    yield
    sys.modules.pop("graphgps", None)
    sys.meta_path[:] = finders
    for registry, content in zip(REGISTRIES, contents, strict=True):
        registry.clear()
        registry.update(content)


def import_upstream() -> Any:
    import graphgps  # type: ignore[import-not-found]  # written by the fixture

    return graphgps


def test_importing_registers_nothing_and_loads_no_torch() -> None:
    code = "import sys, graphgps_pearl; print([m for m in ('torch', 'torch_geometric') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_registering_twice_changes_nothing() -> None:
    atom = graphgym.node_encoder_dict["Atom"]
    graphgps_pearl.register()
    before, finders = [dict(registry) for registry in REGISTRIES], list(sys.meta_path)
    graphgps_pearl.register()
    graphgps_pearl.register(only=())
    assert before == [dict(registry) for registry in REGISTRIES]
    assert finders == sys.meta_path
    assert graphgym.node_encoder_dict["Atom"] is atom


def test_everything_of_ours_is_registered() -> None:
    graphgps_pearl.register()
    assert set(encoders.NODE_ENCODERS) <= set(graphgym.node_encoder_dict)
    assert set(encoders.EDGE_ENCODERS) <= set(graphgym.edge_encoder_dict)
    assert {"GPSModel", "custom_gnn"} <= set(graphgym.network_dict)
    assert {"graph", "san_graph", "mlp_graph"} <= set(graphgym.head_dict)
    assert {"add", "mean", "max"} <= set(graphgym.pooling_dict)


def test_upstream_after_everything_is_refused_in_one_line() -> None:
    graphgps_pearl.register()
    with pytest.raises(ImportError, match=r"register\(\) has taken names .* import graphgps first") as error:
        import_upstream()
    assert "\n" not in str(error.value)


def test_after_upstream_only_free_names_are_filled() -> None:
    graphgps = import_upstream()
    graphgps_pearl.register()
    assert graphgym.node_encoder_dict["RWSE"] is graphgps.RWSE
    assert graphgym.node_encoder_dict["BPEARL"] is encoders.NODE_ENCODERS["BPEARL"]
    assert import_upstream() is graphgps


@pytest.mark.parametrize("upstream_first", [True, False])
def test_named_encodings_stand_beside_upstream_in_either_order(upstream_first: bool) -> None:
    if upstream_first:
        import_upstream()
    graphgps_pearl.register(only=("RPEARL", "BPEARL"))
    graphgps = import_upstream()
    names = graphgym.node_encoder_dict
    assert names["RWSE"] is names["TypeDictNode+RWSE"] is graphgps.RWSE
    assert "LapPE" not in names and "GPSModel" not in graphgym.network_dict
    assert {
        "TypeDictNode+BPEARL",
        "Atom+RWSE+RPEARL",
        "Atom+RPEARL+BPEARL",
        "LinearNode+BPEARL+LapPE",
    } <= set(names)
    cfg = CfgNode()
    set_cfg(cfg)
    assert cfg.posenc_BPEARL.enable is False and cfg.posenc_BPEARL.dim_pe == 16
    assert "inject" not in cfg.posenc_BPEARL  # upstream's networks could not honour it


def test_an_unknown_name_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"register\(only=...\): 'PEARL' is none of RPEARL, BPEARL, "):
        graphgps_pearl.register(only=("PEARL",))


def test_graphgym_can_build_our_network() -> None:
    graphgps_pearl.register()
    config.activate(
        config.parse(
            """
            dataset: {node_encoder: True, node_encoder_name: LinearNode+BPEARL, task: graph,
                      edge_encoder: True, edge_encoder_name: DummyEdge}
            model: {type: GPSModel}
            gnn: {dim_inner: 32, head: san_graph}
            gt: {layer_type: GINE+Transformer, layers: 1, dim_hidden: 32, n_heads: 4}
            """
        )
    )
    network = graphgym.network_dict["GPSModel"](dim_in=5, dim_out=2)
    assert network.encoder.node_encoder.encoders[0].encoder.in_features == 5
    assert sum(p.numel() for p in graphgym.head_dict["san_graph"](dim_in=32, dim_out=2).parameters()) > 0
