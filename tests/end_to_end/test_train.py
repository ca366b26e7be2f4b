"""From a config file to a trained model and its results, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.small_runs import CONFIG, numbers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from graphgps_pearl import cli, config, data
from graphgps_pearl.report.pictures import BEST

#: What a network of this size learns from so many molecules can be seen in twelve epochs.
LARGER = (
    *("dataset.subset", "400", "train.batch_size", "32", "train.max_params", "500000"),
    *("posenc_RPEARL.dim_pe", "8", "posenc_RPEARL.hidden_dim", "8"),
    *("posenc_RPEARL.num_layers", "2", "posenc_RPEARL.num_samples", "4"),
    *("gt.layers", "2", "gt.n_heads", "4", "gt.dim_hidden", "32", "gnn.dim_inner", "32"),
    *("optim.max_epoch", "12", "optim.scheduler", "cosine_with_warmup", "optim.num_warmup_epochs", "0"),
)
FEW = ("dataset.subset", "100")


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def train(config_file, tmp_path, dataset_dir):
    def run(*words: str, options: tuple[str, ...] = ()) -> tuple[int, Path]:
        where = ["out_dir", str(tmp_path / "results"), "dataset.dir", str(dataset_dir)]
        code = cli.train(["--cfg", str(config_file), *options, *where, *LARGER, *words])
        return code, tmp_path / "results" / "small" / "0"

    return run


def mae_of_the_mean(run: Path) -> float:
    """The test error of predicting the mean of the training targets."""
    splits = data.load(config.load(run / "config.yaml")).splits
    train, test = (torch.cat([graph.y for graph in splits[name]]) for name in ("train", "test"))
    return float((test - train.mean()).abs().mean())


def test_it_learns_and_leaves_its_results(train, capsys):
    code, run = train()
    assert code == 0
    history = numbers(run)
    assert len(history) == 12
    assert float(history[-1]["train_loss"]) < 0.6 * float(history[0]["train_loss"])

    result = json.loads((run / "result.json").read_text())
    best = min(range(12), key=lambda e: float(history[e]["val_mae"]))
    assert result["best"]["epoch"] == best
    assert result["best"]["test_mae"] == pytest.approx(float(history[best]["test_mae"]))
    assert result["best"]["test_mae"] < 0.75 * mae_of_the_mean(run)
    # AdamW has a state for what it has stepped: every parameter that was counted had a gradient.
    adam = torch.load(run / "last.ckpt", weights_only=True)["optimizer_states"][0]["state"].values()
    assert sum(result["parameters"].values()) == sum(state["exp_avg"].numel() for state in adam)

    for name in ("config.yaml", "versions.json", "last.ckpt", "best.ckpt"):
        assert (run / name).is_file(), name
    events = EventAccumulator(str(run)).Reload()
    scalars, images = set(events.Tags()["scalars"]), set(events.Tags()["images"])
    assert {"train/loss", "val/mae", "test/mae", "training/lr", "training/grad_norm"} <= scalars
    assert min(scalars | images) == "test/loss", "TensorBoard sorts by name and opens on curves of a split"
    assert [e.step for e in events.Scalars("val/mae")] == list(range(12))
    assert events.Scalars(f"{BEST}/test_mae")[0].value == pytest.approx(result["best"]["test_mae"])
    assert images == {
        "views/predictions_test_scatter",
        "views/RPEARL_on_graphs",
        "views/RPEARL_in_the_plane",
    }
    aggregate = json.loads((run.parent / "agg" / "results.json").read_text())
    assert aggregate["mean"]["test_mae"] == result["best"]["test_mae"]
    assert "test" in (run.parent / "agg" / "results.md").read_text()
    shown = capsys.readouterr().out
    assert " 12/12 " in shown
    assert f"{result['best']['test_mae']:.4f}" in shown
    assert "tensorboard --logdir" in shown


def test_a_finished_run_is_reported_and_not_repeated(train, capsys):
    _, run = train("optim.max_epoch", "2")
    before = (run / "last.ckpt").stat().st_mtime_ns
    capsys.readouterr()
    code, _ = train("optim.max_epoch", "2")
    assert code == 0
    shown = capsys.readouterr().out
    assert "epoch    1/2" not in shown
    assert "test" in shown
    assert (run / "last.ckpt").stat().st_mtime_ns == before

    code, _ = train("optim.max_epoch", "3")
    assert code == 2
    assert "optim.max_epoch = 2 instead of 3" in capsys.readouterr().err
    assert (run / "last.ckpt").stat().st_mtime_ns == before
    code, _ = train("optim.max_epoch", "3", options=("--overwrite",))
    assert code == 0
    assert len(numbers(run)) == 3


def test_pictures_are_those_of_the_continued_run(train):
    words = ("optim.scheduler", "none", *FEW)
    for epochs in ("1", "2", "2"):
        code, run = train("optim.max_epoch", epochs, *words)
        assert code == 0
    result = json.loads((run / "result.json").read_text())
    assert len(list(run.glob("*.pictures"))) == 2  # none for a run that was finished
    shown = EventAccumulator(str(run)).Reload().Scalars(f"{BEST}/test_mae")[-1].value
    assert shown == pytest.approx(result["best"]["test_mae"])


def test_seeds_differ_and_repeat_exactly(train):
    _, run = train("optim.max_epoch", "1", options=("--repeat", "2"))
    assert numbers(run) != numbers(run.with_name("1"))
    first = numbers(run)
    train("optim.max_epoch", "1", options=("--overwrite",))
    assert numbers(run) == first
    summary = json.loads((run.parent / "agg" / "results.json").read_text())
    assert summary["seeds"] == [0, 1]
    assert summary["std"]["test_mae"] > 0


def test_early_stopping_counts_epochs_without_improvement(train):
    # A learning rate of nearly zero: after the first epoch nothing improves by chance for long.
    _, run = train("optim.base_lr", "1e-12", "optim.scheduler", "none", "train.early_stopping", "2", *FEW)
    result = json.loads((run / "result.json").read_text())
    assert result["epochs"] == result["best"]["epoch"] + 1 + 2 < 12


def test_the_budget_stops_before_any_data_is_read(train, capsys, monkeypatch):
    from graphgps_pearl import data

    def unexpected(*_args, **_kwargs):
        raise AssertionError("data was loaded")

    monkeypatch.setattr(data, "load", unexpected)
    code, run = train("train.max_params", "1000")
    assert code == 2
    error = capsys.readouterr().err
    assert "train.max_params: the model has" in error
    for part in ("encoder", "local", "attention", "feed-forward", "head"):
        assert part in error
    assert not (run / "last.ckpt").exists()


def test_mark_done_renames_the_config(train, config_file):
    train("optim.max_epoch", "1", options=("--mark_done",))
    assert not config_file.exists()
    assert config_file.with_name("small.yaml_done").is_file()


def without_torch(*words: object) -> subprocess.CompletedProcess[str]:
    """``main.py`` with these words, in a process that must not import torch: so the answer comes at once."""
    script = (
        "import sys\n"
        "from graphgps_pearl import cli\n"
        "try:\n    code = cli.train(sys.argv[1:])\n"
        "except SystemExit as exit:\n    code = exit.code\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)"
    )
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)


def test_help_and_errors_come_before_torch_is_imported(tmp_path):
    done = without_torch("--help")
    assert done.returncode == 0
    assert "--cfg FILE" in done.stdout
    bad = tmp_path / "bad.yaml"
    bad.write_text("gt:\n  layer: 3\n")
    done = without_torch("--cfg", bad)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "gt.layer" in done.stderr
    assert "gt.layers" in done.stderr
