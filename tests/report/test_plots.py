import json
import shutil
from itertools import pairwise

import pytest
import yaml

from graphgps_pearl import config
from graphgps_pearl.report.comparison import compare_all
from graphgps_pearl.report.groups import grouped
from graphgps_pearl.report.plots import (
    _common_name,
    ablation_plots,
    all_plots,
    differing_keys,
    learning_curves,
    mean_curve,
    samples_plots,
    time_unit,
)
from graphgps_pearl.report.samples import Point
from graphgps_pearl.report.samples import read as read_samples
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
    figure = ablation_plots(compare_all(grouped(runs))[0])["ablation-posenc_BPEARL.num_taps"]
    (line, *_) = figure.axes[0].lines
    assert list(line.get_xdata()) == [1, 2, 12]
    assert list(line.get_ydata()) == pytest.approx([0.21, 0.22, 0.32])
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["b"]
    assert "ablation-gt.layers.png" in [plot.name for plot in all_plots(compare_all(grouped(runs))[0])]


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
    figure = ablation_plots(compare_all(grouped(runs))[0])["ablation-posenc_RPEARL.distribution"]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["gaussian", "sobol"]
    assert _common_name(["zinc-b-taps-1", "zinc-b-taps-12"], "posenc.taps") == "zinc-b"
    assert _common_name(["one", "two"], "gt.layers") == "one"


def test_numbers_and_words_of_one_key_share_an_axis(write):
    folder, one = write
    one("a", 0.3, posenc_GraphormerBias__num_in_degrees=64)
    one("b", 0.2)  # whose value is null
    figures = ablation_plots(compare_all(grouped(find_runs(folder)))[0])
    axes = figures["ablation-posenc_GraphormerBias.num_in_degrees"].axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["64", "None"]


def test_a_key_of_a_users_own_group_may_be_in_some_runs_only(write):
    folder, one = write
    one("a", 0.3)
    one("b", 0.2)
    path = folder / "b" / "0" / "config.yaml"
    path.write_text(f"{path.read_text()}mine: {{scale: 3}}\n")
    axes = ablation_plots(compare_all(grouped(find_runs(folder)))[0])["ablation-mine.scale"].axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["3", "None"]


def test_samples_of_different_splits_are_told_apart():
    points = [Point(1, 0, 0.5, 0.4), Point(4, 0, 0.4, 0.2)]
    one, other = ("val_mae", points), ("test_mae", points)
    axes = samples_plots({"a": one, "b": other})["metric-by-samples"].axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a, val_mae", "b, test_mae"]
    axes = samples_plots({"a": one, "b": one})["metric-by-samples"].axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_a_damaged_curve_leaves_those_of_the_other_seeds(write):
    folder, one = write
    one("a", 0.3)
    shutil.copytree(folder / "a" / "0", folder / "a" / "1")
    (folder / "a" / "0" / "metrics.csv").write_text("epoch,seconds,val_mae\n0,60,0.4\n")
    (folder / "a" / "1" / "metrics.csv").write_text("epoch,seconds,val_mae\n0,60,x\n")
    assert mean_curve(find_runs(folder)["a"], "val_mae").means == [0.4]


def test_curves_are_means_over_seeds_with_a_band(write):
    folder, one = write
    one("a", 0.3)
    (folder / "a" / "1").mkdir()
    for name in ("config.yaml", "result.json"):
        (folder / "a" / "1" / name).write_text((folder / "a" / "0" / name).read_text())
    for seed, values in ((0, (0.4, 0.2)), (1, (0.6, 0.2, 0.1))):
        rows = [f"{i},60,{value}" for i, value in enumerate(values)]
        (folder / "a" / str(seed) / "metrics.csv").write_text(
            "\n".join(["epoch,seconds,val_mae", *rows]) + "\n"
        )
    (comparison,) = compare_all(grouped(find_runs(folder)))
    curve = mean_curve(comparison.runs["a"], "val_mae")
    assert (curve.epochs, curve.seconds) == ([1, 2], [60, 120])  # where both seeds have a value
    assert curve.means == pytest.approx([0.5, 0.2])
    figure = learning_curves(comparison, by_time=False)
    assert len(figure.axes[0].collections) == 1  # the band
    assert all(tick == int(tick) for tick in figure.axes[0].get_xticks())
    assert learning_curves(comparison, by_time=True).axes[0].get_xlabel() == "minutes of training"


def test_labels_of_a_logarithmic_axis_do_not_overlap(write):
    folder, one = write
    one("a", 0.07)
    values = (2.0, 1.0, 0.3, 0.07)
    rows = "".join(f"{epoch},60,{value}\n" for epoch, value in enumerate(values))
    (folder / "a" / "0" / "metrics.csv").write_text("epoch,seconds,val_mae\n" + rows)
    (comparison,) = compare_all(grouped(find_runs(folder)))
    figure = learning_curves(comparison, by_time=False)
    figure.canvas.draw()
    axis = figure.axes[0].yaxis
    labels = [label for label in axis.get_ticklabels(which="both") if label.get_text()]
    boxes = sorted(
        (box.y0, box.y1)
        for box in (label.get_window_extent() for label in labels)
        if figure.axes[0].bbox.y0 <= box.y0 and box.y1 <= figure.axes[0].bbox.y1
    )
    assert len(boxes) >= 3
    assert all(top < bottom for (_, top), (bottom, _) in pairwise(boxes))


def test_units_of_time():
    assert [time_unit(s)[0] for s in (5, 119, 120, 7199, 7200)] == [
        "seconds",
        "seconds",
        "minutes",
        "minutes",
        "hours",
    ]


def test_a_damaged_table_of_samples_is_left_out(tmp_path, caplog):
    header = "samples,table,test_mae,encoding_error\n"
    for text in ("", header, f"{header}1,0,x,0.5\n"):
        (tmp_path / "samples.csv").write_text(text)
        assert read_samples(tmp_path) is None
        assert "samples.csv is left out: it is damaged" in caplog.text
        caplog.clear()
