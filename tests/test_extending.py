"""An encoder, a dataset, a metric, a layer and a command are one file each: docs/examples/extending."""

import csv
import importlib.util
import sys
from pathlib import Path

import pytest

from graphgps_pearl import cli, config
from graphgps_pearl.config import schema
from graphgps_pearl.data import registry
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.run import run

REPOSITORY = Path(__file__).resolve().parents[1]
FILES = sorted((REPOSITORY / "docs" / "examples" / "extending").glob("*.py"))

CONFIG = """
metric_best: medae
metric_agg: argmin
custom_metrics: [medae]
dataset:
  format: toy
  name: cycles
  task: graph
  task_type: regression
  split_mode: random
  node_encoder: True
  node_encoder_name: LinearNode+Degree
posenc_Degree: {dim_pe: 4, max_degree: 3}
train: {batch_size: 16, eval_period: 1}
model: {type: custom_gnn, loss_fun: l1}
gnn: {layer_type: meanconv, layers_mp: 2, dim_inner: 16}
optim: {base_lr: 0.01, max_epoch: 3}
"""


@pytest.fixture
def extended(monkeypatch):
    """The five files, loaded as a user's own modules; what they register is forgotten afterwards."""
    from torch_geometric.graphgym import register as graphgym

    register()
    registry.available()  # loads the datasets that come along
    tables = [graphgym.node_encoder_dict, graphgym.layer_dict, graphgym.metric_dict]
    tables += [schema.SCHEMA, schema._HELP, registry._SOURCES, cli.COMMANDS]
    before = [dict(table) for table in tables]
    for file in FILES:
        name = f"extending_{file.stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        monkeypatch.setitem(sys.modules, name, importlib.util.module_from_spec(spec))
        spec.loader.exec_module(sys.modules[name])
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
    schema.SECTIONS.discard("posenc_Degree")


def test_encoder_dataset_metric_and_layer_train_together(extended, tmp_path) -> None:
    cfg = config.parse(CONFIG, ["dataset.dir", str(tmp_path / "data")])
    assert config.encodings(cfg) == ("Degree",)
    result = run(cfg, RunFolder(tmp_path / "run"))
    assert result["metric"] == "val_medae" and result["best"]["test_medae"] > 0
    with (tmp_path / "run" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 and all(float(row["train_medae"]) >= 0 for row in rows)


def test_their_settings_are_checked_like_all_others(extended) -> None:
    with pytest.raises(ConfigError, match=r"posenc_Degree.max_degree = 0: expected an integer >= 1"):
        config.parse(CONFIG, ["posenc_Degree.max_degree", "0"])
    with pytest.raises(ConfigError, match=r"posenc_Degree.max_degre .*did you mean posenc_Degree.max_degree"):
        config.parse(CONFIG, ["posenc_Degree.max_degre", "1"])


def test_a_command(extended, capsys) -> None:
    assert cli.main(["keys", "posenc_Degree"]) == 0
    assert "posenc_Degree.max_degree: Degrees above it" in capsys.readouterr().out


def test_a_metric_that_is_not_registered_is_named(extended, tmp_path) -> None:
    words = ["custom_metrics", "[medea]", "metric_best", "mae", "dataset.dir", str(tmp_path)]
    with pytest.raises(ConfigError, match=r"custom_metrics: 'medea' is not registered.*medae"):
        run(config.parse(CONFIG, words), RunFolder(tmp_path / "run"))


def test_the_page_for_developers_names_every_file() -> None:
    page = (REPOSITORY / "docs" / "development.md").read_text(encoding="utf-8")
    assert FILES and all(f"examples/extending/{file.name}" in page for file in FILES)
