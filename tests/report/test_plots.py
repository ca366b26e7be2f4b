import json

import pytest
import yaml

from graphgps_pearl import config
from graphgps_pearl.report.comparison import compare
from graphgps_pearl.report.plots import _common_name, ablation_plots, all_plots, differing_keys
from graphgps_pearl.runs.folder import flatten
from graphgps_pearl.runs.results import find_runs


@pytest.fixture
def write(tmp_path):
    """Makes finished runs of configs that differ in given keys from the defaults."""

    def one(name: str, mae: float, **changes: object) -> None:
        folder = tmp_path / name / "0"
        folder.mkdir(parents=True)
        tree = yaml.safe_load(config.dump(config.defaults()))
        for key, value in changes.items():
            group, _, last = key.replace("__", ".").rpartition(".")
            (tree[group] if group else tree)[last] = value
        assert flatten(tree).keys() == config.SCHEMA.keys()
        (folder / "config.yaml").write_text(yaml.safe_dump(tree))
        result = {
            "config": name,
            "splits": ["train", "val", "test"],
            "metric": "val_mae",
            "larger_is_better": False,
            "best": {"epoch": 1, "train_mae": 0.1, "val_mae": mae, "test_mae": mae},
            "epochs": 3,
            "parameters": {"encoder": 1},
            "seconds_per_epoch": 2.0,
            "prepare_seconds": 1.0,
            "memory_mb": 300.0,
        }
        (folder / "result.json").write_text(json.dumps(result))

    return tmp_path, one


def test_an_ablation_is_a_curve_over_the_one_key_that_differs(write):
    folder, one = write
    for taps in (1, 2, 12):
        one(f"b-num_taps-{taps}", 0.2 + taps / 100, posenc_BPEARL__num_taps=taps, name_tag=f"num_taps-{taps}")
    one("deeper", 0.3, posenc_BPEARL__num_taps=1, gt__layers=9)
    one("both", 0.4, posenc_BPEARL__num_taps=3, gt__layers=5)  # differs from every other in two keys
    runs = find_runs(folder)
    groups = differing_keys(runs)
    assert {key: [sorted(g) for g in found] for key, found in groups.items()} == {
        "posenc_BPEARL.num_taps": [["b-num_taps-1", "b-num_taps-12", "b-num_taps-2"]],
        "gt.layers": [["b-num_taps-1", "deeper"]],
    }
    figure = ablation_plots(compare(runs), runs)["ablation-posenc_BPEARL.num_taps"]
    (line, *_) = figure.axes[0].lines
    assert list(line.get_xdata()) == [1, 2, 12]
    assert list(line.get_ydata()) == pytest.approx([0.21, 0.22, 0.32])
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["b"]
    assert "ablation-gt.layers.png" in all_plots(compare(runs), runs)


def test_a_key_that_older_runs_do_not_have_makes_no_curve(write):
    folder, one = write
    one("old", 0.3)
    one("new", 0.2)
    path = folder / "old" / "0" / "config.yaml"
    tree = yaml.safe_load(path.read_text())
    del tree["posenc_BPEARL"]["plan"]
    path.write_text(yaml.safe_dump(tree))
    assert differing_keys(find_runs(folder)) == {}


def test_words_on_the_axis_and_names_of_curves(write):
    folder, one = write
    one("a", 0.3, posenc_RPEARL__distribution="gaussian")
    one("b", 0.2, posenc_RPEARL__distribution="sobol")
    runs = find_runs(folder)
    figure = ablation_plots(compare(runs), runs)["ablation-posenc_RPEARL.distribution"]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["gaussian", "sobol"]
    assert _common_name(["zinc-b-taps-1", "zinc-b-taps-12"], "posenc.taps") == "zinc-b"
    assert _common_name(["one", "two"], "gt.layers") == "one"
