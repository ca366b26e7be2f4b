"""Of several mistakes the first to correct is named: dataset and task before loss and metric."""

import pytest
from helpers.small_runs import CONFIG

from graphgps_pearl import config
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.run import run


@pytest.mark.parametrize(
    "words, key",
    [
        (["dataset.format", "PyG-Planetoids"], "dataset.format: 'PyG-Planetoids'.*PyG-Planetoid"),
        (["dataset.name", "wehi-logq"], "dataset.name: 'wehi-logq'.*wehi-logp"),
        (["dataset.task", "node", "gnn.head", "node"], "dataset.task: 'node'"),
    ],
)
@pytest.mark.parametrize("more", [["metric_best", "accuracy-SBM"], ["model.loss_fun", "weighted_something"]])
def test_the_dataset_is_named_first(words, key, more, tmp_path, monkeypatch) -> None:
    from torch_geometric.graphgym import register as graphgym

    register()
    monkeypatch.setattr(graphgym, "loader_dict", {})
    cfg = config.parse(CONFIG, [*words, *more])
    with pytest.raises(ConfigError, match=key):
        run(cfg, RunFolder(tmp_path / "0"))
