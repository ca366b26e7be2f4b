"""The search over config keys: what it refuses, what decides, and that it goes on where it was."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.small_runs import CONFIG

from graphgps_pearl import cli, config
from graphgps_pearl.experiments import search as searching
from graphgps_pearl.experiments.jobs import Ending
from graphgps_pearl.runs.results import find_runs

pytest.importorskip("optuna", reason="the search needs Optuna (pip install optuna)")
REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
RATE = "optim.base_lr=1e-4:1e-2:log"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "small.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Runs:
    """Stands in for the processes: writes what a run of three epochs leaves, its metric a function of the
    config; the test metric is best where validation is worst."""

    def __init__(self, ends=()):
        self.jobs = []
        self.ends = dict(ends)  # by position: an Ending, or an exception

    def __call__(self, jobs, at_once, ended, *, watch, observer):
        for job in jobs:
            observer.started(job, job.folder.with_suffix(".log"))
            ended(job, self.train(job, watch))

    def train(self, job, watch) -> Ending:
        self.jobs.append(job)
        end = self.ends.get(len(self.jobs) - 1)
        cfg = config.load(job.file, job.overrides)
        value = abs(math.log10(cfg.optim.base_lr) + 3)  # best at 1e-3
        job.folder.mkdir(parents=True, exist_ok=True)
        (job.folder / "config.yaml").write_text(config.dump(cfg))
        if isinstance(end, BaseException):
            raise end
        if end is not None:
            return end
        rows = ["epoch,seconds,val_mae,test_mae"]
        for epoch in range(3):
            rows.append(f"{epoch},1,{value + 3 - epoch},{-value}")
            (job.folder / "metrics.csv").write_text("\n".join(rows) + "\n")
            reason = watch(job)
            if reason:
                return Ending("stopped", reason)
        best = {"epoch": 2, "val_mae": value, "test_mae": -value}
        run = {"config": "small", "splits": ["train", "val", "test"], "parameters": {}, "epochs": 3}
        (job.folder / "result.json").write_text(json.dumps(run | {"metric": "val_mae", "best": best}))
        return Ending("done")


def run(monkeypatch, runs: Runs, *overrides: str) -> int:
    monkeypatch.setattr(searching, "run_jobs", runs)
    return cli.main(["search", "small.yaml", *overrides])


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["optim.base_rl=1,2"], "optim.base_rl = 1,2: unknown key; "),
        (["optim.base_lr"], "expected KEY=A,B,C or KEY=LOW:HIGH"),
        (["optim.base_lr=1e-2:1e-4"], "with LOW below HIGH"),
        (["optim.weight_decay=0:1:log"], "starts above 0"),
        (["posenc_RPEARL.num_layers=2:4:1:log"], "LOW:HIGH:STEP"),
        (["posenc_RPEARL.num_layers=2:4:0.5"], "LOW:HIGH:STEP"),
        (["posenc_RPEARL.num_layers=2:many"], "expected an integer >= 0"),
        (["posenc_RPEARL.num_layers=1,-1"], "posenc_RPEARL.num_layers = -1: expected an integer >= 0"),
        (["posenc_RPEARL.norm=batch,laier"], "did you mean layer?"),
        (["posenc_RPEARL.norm=batch"], "two or more different values"),
        (["posenc_RPEARL.norm=batch,batch"], "two or more different values"),
        (["posenc_BPEARL.num_layers=1,2"], "the config does not use BPEARL"),
        (["posenc_RPEARL=1,2"], "is a group, not a key"),
        (["seed=0:9"], "no key to search over"),
        (["dataset.split_index=0,1"], "no key to search over"),
        (["metric_best=mae,rmse"], "no key to search over"),
        (["gt.pna_degrees=[1],[2]"], "no key to search over"),
        (["gnn.keep_edge=0.1,0.2"], "no key to search over"),
        ([RATE, "optim.base_lr=1e-3,1e-2"], "is given twice"),
        ([RATE, "--trials", "0"], "--trials 0 --jobs 1: expected"),
        ([RATE, "--jobs", "0"], "--trials 20 --jobs 0: expected"),
        ([RATE, "--study", "a", "run_multiple_splits", "[0, 1]"], "makes several runs of a trial"),
    ],
)
def test_mistakes_are_one_line(folder, capsys, overrides, said):
    assert cli.main(["search", "small.yaml", "--keys", *overrides]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1
    assert not (folder / "results").exists()


def test_mistakes_are_found_before_torch_is_imported(folder):
    script = (
        "import sys; from graphgps_pearl import cli\n"
        "assert cli.main(['search', 'small.yaml', '--keys', 'optim.base_rl=1,2']) == 2\n"
        "print([m for m in ('torch', 'optuna') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_validation_metric_decides_and_the_answer_can_be_pasted(folder, monkeypatch, capsys):
    runs = Runs()
    assert (
        run(monkeypatch, runs, "--keys", "optim.base_lr=1e-4,2e-3,9e-3", "--trials", "8", "gt.layers", "2")
        == 0
    )
    said = capsys.readouterr().out
    assert len(runs.jobs) == 3  # the others had settings that were trained already
    assert "has the settings of trial" in said
    assert "optim:\n  base_lr: 0.002\n" in said
    assert "test" not in said.replace(str(folder), "")
    (line,) = (line for line in said.splitlines() if line.startswith("graphgps-pearl train --cfg"))
    pasted = config.load("small.yaml", line.split()[4:])
    assert (pasted.optim.base_lr, pasted.gt.layers) == (0.002, 2)
    delta = said.split("as a config beside small.yaml:\n\n")[1].split("\n\nas overrides")[0]
    (folder / "best.yaml").write_text(delta)
    assert (config.load("best.yaml").optim.base_lr, config.load("best.yaml").gt.layers) == (0.002, 2)


def test_an_interrupted_search_goes_on_with_the_trial_that_was_running(folder, monkeypatch, capsys):
    overrides = ["--keys", RATE, "posenc_RPEARL.num_layers=1:4", "--trials", "4"]
    first = Runs({2: KeyboardInterrupt()})
    assert run(monkeypatch, first, *overrides) == 130
    again = Runs({0: KeyboardInterrupt()})
    assert run(monkeypatch, again, *overrides) == 130
    last = Runs()
    capsys.readouterr()
    assert run(monkeypatch, last, *overrides) == 0
    assert first.jobs[2] == again.jobs[0] == last.jobs[0]  # the same settings in the same folder
    assert len(last.jobs) == 2
    said = capsys.readouterr().out
    assert "[3/4] small-trial-002, seed 0: val mae" in said
    assert "4 trained to the end" in said
    assert len({job.folder for job in first.jobs + last.jobs}) == 4
    finished = Runs()
    assert run(monkeypatch, finished, *overrides) == 0  # nothing is left to do
    assert finished.jobs == []
    assert run(monkeypatch, finished, *overrides[:-1], "6") == 0
    assert len(finished.jobs) == 2


def propose(monkeypatch, rates: list[float]) -> None:
    """Let the search try these learning rates, one after the other."""
    import optuna

    class Given(optuna.samplers.BaseSampler):
        def infer_relative_search_space(self, study, trial):
            return {}

        def sample_relative(self, study, trial, search_space):
            return {}

        def sample_independent(self, study, trial, name, distribution):
            return rates[trial.number] if name == "optim.base_lr" else distribution.choices[trial.number % 2]

    monkeypatch.setattr(optuna.samplers, "TPESampler", lambda **_: Given())


def test_a_trial_behind_the_median_is_ended_early_and_the_report_says_so(folder, monkeypatch, capsys):
    propose(monkeypatch, [1e-3, 2e-3, 3e-3, 1.1e-3, 1e-2])
    runs = Runs()
    assert run(monkeypatch, runs, "--keys", RATE, "--trials", "5") == 0
    assert (
        "small-trial-004, seed 0: pruned after epoch 1: val mae 4.0000 is behind the median"
        in capsys.readouterr().out
    )
    assert not (runs.jobs[4].folder / "result.json").exists()
    (runs.jobs[4].folder / "failed.txt").write_text("pruned after epoch 1")  # as the process's keeper does
    states = [run.state for some in find_runs(folder / "results" / "search-small").values() for run in some]
    assert states == ["finished"] * 4 + ["pruned after epoch 1"]


def test_runs_of_different_length_are_not_compared_in_their_middle(folder, monkeypatch, capsys):
    """At one epoch a short schedule is nearly done and a long one is not; the value at the end decides."""
    propose(monkeypatch, [1e-3, 2e-3, 3e-3, 1.1e-3, 1e-2])
    runs = Runs()
    assert run(monkeypatch, runs, "--keys", RATE, "optim.max_epoch=3,40", "--trials", "5") == 0
    assert "(5 trained to the end" in capsys.readouterr().out
    assert [job.epochs for job in runs.jobs] == [3, 40, 3, 40, 3]


def test_settings_that_were_pruned_do_not_count_as_trained_when_proposed_again(folder, monkeypatch, capsys):
    propose(monkeypatch, [1e-3, 2e-3, 3e-3, 1.1e-3, 1e-2, 1e-2])
    runs = Runs()
    assert run(monkeypatch, runs, "--keys", RATE, "--trials", "6") == 0
    said = capsys.readouterr().out
    assert len(runs.jobs) == 5
    assert "small-trial-005, seed 0: has the settings of trial 4, which was ended early" in said
    assert "(4 trained to the end, 2 ended early or not begun, 0 failed)" in said


def test_what_cannot_be_trained_is_said_and_the_search_goes_on(folder, monkeypatch, capsys):
    budget = "error: train.max_params: the model has 501,000 trainable parameters, the budget is 500,000"
    runs = Runs({0: Ending("failed", budget), 1: Ending("failed", "error: out of luck")})
    assert run(monkeypatch, runs, "--keys", RATE, "posenc_RPEARL.dim_pe=6:12", "--trials", "12") == 0
    said = capsys.readouterr().out
    assert "over the budget, train.max_params: the model has 501,000" in said
    assert "failed, error: out of luck" in said
    assert "not trained, small.yaml: posenc_RPEARL.dim_pe = " in said  # wider than the network
    assert "1 failed)" in said


def test_a_search_that_only_fails_stops(folder, monkeypatch, capsys):
    runs = Runs({n: Ending("failed", "error: no data") for n in range(9)})
    assert run(monkeypatch, runs, "--keys", RATE, "--trials", "9") == 2
    assert "3 trials in a row failed; the last: failed, error: no data" in capsys.readouterr().err
    assert len(runs.jobs) == 3


def test_another_search_in_the_same_storage_is_refused(folder, monkeypatch, capsys):
    assert run(monkeypatch, Runs(), "--keys", RATE, "--trials", "1") == 0
    assert run(monkeypatch, Runs(), "--keys", "optim.base_lr=1e-4:1e-3", "--trials", "1") == 2
    assert (
        "holds a search with --keys optim.base_lr=1e-4:1e-2:log, now they differ" in capsys.readouterr().err
    )
    assert run(monkeypatch, Runs(), "--keys", RATE, "--trials", "1", "gt.layers", "2") == 2
    assert "holds a search with gt.layers = 1 instead of 2: give --study NAME" in capsys.readouterr().err
    overrides = ["--keys", RATE, "--trials", "1", "gt.layers", "2", "--study", "deeper"]
    assert run(monkeypatch, Runs(), *overrides, "--storage", "results/search-small/study.db") == 0


def test_a_storage_that_is_none_and_a_missing_package_are_one_line(folder, monkeypatch, capsys):
    (folder / "notes.txt").write_text(
        "not a database, and long enough to be seen as one that is damaged\n" * 9
    )
    assert run(monkeypatch, Runs(), "--keys", RATE, "--storage", "notes.txt") == 2
    error = capsys.readouterr().err.strip()
    assert "notes.txt: cannot be used as Optuna's storage" in error
    assert len(error.splitlines()) == 1
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert run(monkeypatch, Runs(), "--keys", RATE) == 2
    assert "pip install 'optuna>=5,<6'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_search_is_continued(folder):
    command = [sys.executable, "-m", "graphgps_pearl", "search", "small.yaml", "--keys", RATE]
    command += ["--trials", "3"]
    command += ["dataset.dir", str(folder / "data"), "optim.max_epoch", "20"]
    trials = folder / "results" / "search-small"
    process = subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True)
    deadline = time.monotonic() + 400
    while not list(trials.glob("small-trial-001/0/last.ckpt")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (trials / "small-trial-001" / "0" / "result.json").exists()

    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert "[2/3] small-trial-001, seed 0: val mae" in done.stdout
    results = [json.loads(path.read_text()) for path in sorted(trials.glob("*/*/result.json"))]
    assert [result["config"] for result in results] == [f"small-trial-00{n}" for n in (0, 1, 3)]
    best = min(result["best"]["val_mae"] for result in results)
    assert f"val mae {best:.4f} (3 trained to the end" in done.stdout
    assert "continuing" in (trials / "small-trial-001" / "0.2.log").read_text()
