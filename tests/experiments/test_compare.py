"""``compare``: which runs it plans, and how it ends."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.small_runs import CONFIG

from graphgps_pearl import config
from graphgps_pearl.errors import UserError
from graphgps_pearl.experiments import compare as compare_module
from graphgps_pearl.experiments.check import require_same
from graphgps_pearl.experiments.compare import compare as compare_command
from graphgps_pearl.experiments.compare import plan, with_encoders
from graphgps_pearl.runs.folder import RunFolder

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "small.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))  # for the processes that are started here
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def test_folds_are_not_multiplied_by_seeds(capsys):
    file = Path(__file__).resolve().parents[2] / "configs" / "csl-none.yaml"
    assert compare_command([str(file), "--seeds", "2"]) == 2
    assert "csl-none.yaml has a run for each of run_multiple_splits already" in capsys.readouterr().err
    assert [job.folder.name for job in plan([file], 1, [])] == ["0"]


@pytest.mark.parametrize("text", ["gt: [1\n", "gt: &a 3\n", "- 1\n"])
def test_a_run_whose_config_cannot_be_read_is_named_before_the_first_run(tmp_path, text):
    run = RunFolder(tmp_path / "small" / "0")
    run.path.mkdir(parents=True)
    run.last.touch()
    run.config.write_text(text)
    with pytest.raises(UserError, match=r"small/0 holds a run with a config.yaml that cannot be read"):
        require_same(run.path, config.dump(config.defaults()))


def test_encoders_take_their_settings_from_the_config_beside_the_base():
    base = Path(__file__).resolve().parents[2] / "configs" / "zinc-bpearl.yaml"
    chosen = with_encoders(base, ["none", "LapPE", "RWSE", "GSN", "BPEARL", "RandomID"], ["seed", "5"])
    assert [file.name for file, _ in chosen] == [
        "zinc-none.yaml",
        "zinc-lappe-8s.yaml",
        "zinc-rwse.yaml",
        "zinc-gsn-cycles.yaml",
        "zinc-bpearl.yaml",
        "zinc-bpearl.yaml",
    ]
    assert chosen[-1][1] == [
        "seed",
        "5",
        "dataset.node_encoder_name",
        "TypeDictNode+RandomID",
        "name_tag",
        "RandomID",
    ]


@pytest.mark.parametrize(
    "line",
    (
        "--base quickstart --encoders none BPEARL --seeds 2 seed 5",
        "--seeds 2 --base quickstart --encoders none BPEARL seed 5",
        "quickstart csl-none run_multiple_splits [] --seeds 2 seed 5",
        "quickstart seed 5 --seeds 2 {configs}/csl-none.yaml run_multiple_splits []",
    ),
)
def test_configs_by_name(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare_module, "_train", lambda jobs, at_once: planned.extend(jobs))
    monkeypatch.setattr(compare_module, "show", lambda *args: None)
    planned: list[compare_module.Job] = []
    configs = Path(__file__).resolve().parents[2] / "configs"
    assert compare_command(line.format(configs=configs).split()) == 0
    assert [job.seed for job in planned] == [5, 5, 6, 6]
    assert {job.file.parent for job in planned} == {configs}


def test_a_wrong_name_suggests_the_nearest(capsys):
    assert compare_command(["zinc-none", "zinc-rswe", "seed", "1"]) == 2
    assert "zinc-rswe" in (said := capsys.readouterr().err) and "zinc-rwse" in said


def test_encoders_go_into_the_network_of_the_base():
    base = Path(__file__).resolve().parents[2] / "configs" / "zinc-bpearl-gine-487k.yaml"
    chosen = with_encoders(base, ["none", "RPEARL", "BPEARL"], [])
    assert chosen[-1] == (base, [])  # its own encoder: as it is
    networks = [config.load(file, overrides).gnn for file, overrides in chosen]
    assert networks[0] == networks[1] == networks[2]

    paper = base.with_name("zinc-bpearl-paper.yaml")
    assert with_encoders(paper, ["BPEARL"], []) == [(paper, [])]
    assert with_encoders(paper, ["RWSE"], []) == [(base.with_name("zinc-rwse.yaml"), [])]


def test_a_comparison_with_failures_does_not_end_well(folder, capsys):
    diverging = folder / "diverging.yaml"
    diverging.write_text(CONFIG.replace("base_lr: 0.002", "base_lr: 1.0e+30"))
    assert compare_command(["small.yaml", "diverging.yaml"]) == 2
    shown = capsys.readouterr()
    assert "[1/2] small, seed 0: done, val mae" in shown.out
    assert "[2/2] diverging, seed 0: failed, error:" in shown.out
    assert "one config: nothing to compare" in shown.out
    assert "1 of 2 runs failed" in shown.err


def test_where_all_runs_failed_the_last_line_says_so(folder, monkeypatch, capsys):
    monkeypatch.setattr(compare_module, "_train", lambda jobs, at_once: len(jobs))
    assert compare_command(["small.yaml", "--seeds", "2"]) == 2
    assert "2 of 2 runs failed" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("option", ["--seeds", "--jobs"])
def test_none_at_all_is_refused(folder, capsys, option):
    assert compare_command(["small.yaml", option, "0"]) == 2
    assert f"{option} 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["dataset.node_encoder_name", "Atom+RPEARLL"], "RPEARLL"),
        (["train.max_params", "100"], "train.max_params"),
        (["dataset.format", "PyG-ZINC", "dataset.name", "subset", "dataset.path", "nowhere"], "nowhere"),
        (["optim.base_rl", "1"], "optim.base_rl"),
    ],
)
def test_a_mistake_in_the_last_config_is_found_before_the_first_run(folder, capsys, overrides, said):
    last = config.load("small.yaml")
    for key, value in zip(overrides[::2], overrides[1::2], strict=True):
        group, _, name = key.rpartition(".")
        node = last[group] if group else last
        node[name] = type(node[name])(value) if name in node else value
    (folder / "last.yaml").write_text(config.dump(last))
    assert compare_command(["small.yaml", "last.yaml"]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert said in error[0]
    assert not (folder / "results").exists()


def test_runs_with_other_settings_are_found_before_the_first_run(folder, capsys):
    assert compare_command(["small.yaml"]) == 0
    (folder / "a.yaml").write_text(CONFIG)
    assert compare_command(["a.yaml", "small.yaml", "gt.layers", "2"]) == 2
    assert "small/0 holds a run with gt.layers = 1 instead of 2" in capsys.readouterr().err
    assert not (folder / "results" / "a").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["seed", "1"], "small/0 holds a run with seed = 0 instead of 1"),
        (["run_multiple_splits", "[]", "seed", "1"], "small/1 holds a run with dataset.split_index = 1"),
    ],
)
def test_runs_of_another_seed_or_fold_are_not_taken_for_these(folder, capsys, words, said):
    in_folds = ["dataset.split_mode", "cv-kfold-3", "run_multiple_splits", "[0, 1]"]
    for name, cfg in config.runs(config.load("small.yaml", in_folds)):
        run = RunFolder(folder / "results" / "small" / str(name))
        run.open(config.dump(cfg))
        result = {"config": "small", "splits": [], "parameters": {}, "metric": "val_mae", "best": {}}
        run.write(run.result, json.dumps(result | {"epochs": 3}))
    jobs = plan([Path("small.yaml")], 1, in_folds)
    assert compare_module._train(jobs, 1) == 0  # finished: nothing is trained
    assert compare_command(["small.yaml", *in_folds, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_stopped_comparison_says_what_is_done_and_continues(folder):
    command = [sys.executable, "-m", "graphgps_pearl", "compare", "small.yaml", "--seeds", "2"]
    command += ["optim.max_epoch", "40"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first, second = (RunFolder(folder / "results" / "small" / seed) for seed in "01")
    deadline = time.monotonic() + 900  # on a busy machine
    while len(second.read_metrics()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, error = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM
    assert "[2/2] small, seed 1: started, log results/small/1.log" in said
    assert "stopped by SIGTERM; 1 of 2 runs are done, saved: small, seed 1 at epoch" in error
    assert "the same command continues" in error
    assert second.read_result() is None
    with second.locked():  # its process has ended
        epochs = len(second.read_metrics())
    finished = first.result.stat().st_mtime_ns

    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "[1/2] small, seed 0: done, val mae" in done.stdout
    assert "small, seed 0: started" not in done.stdout
    assert first.result.stat().st_mtime_ns == finished
    assert len(second.read_metrics()) == 40
    again = (folder / "results" / "small" / "1.2.log").read_text()
    assert f"from last.ckpt: epoch {epochs + 1}" in again or "continuing" in again


def test_words_may_stand_right_behind_the_encoders(tmp_path, monkeypatch, capsys):
    planned = []
    monkeypatch.setattr("graphgps_pearl.experiments.compare._train", lambda jobs, _: planned.extend(jobs))
    monkeypatch.setattr("graphgps_pearl.experiments.compare.show", lambda *_: None)
    base = Path(__file__).resolve().parents[2] / "configs" / "quickstart.yaml"
    overrides = ["optim.base_lr", "0.1", "out_dir", str(tmp_path)]
    assert compare_command(["--base", str(base), "--encoders", "none", "BPEARL", *overrides]) == 0
    assert [job.folder for job in planned] == [tmp_path / f"quickstart-{e}" / "0" for e in ("none", "BPEARL")]
    assert all(job.overrides[:4] == tuple(overrides) for job in planned)
    assert capsys.readouterr().out.splitlines() == [
        f"{name}: with the settings of quickstart" for name in ("none", "BPEARL")
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    (
        (
            ["small.yaml", "other/small.yaml"],
            "small.yaml and .*other/small.yaml would both train in .*small/0",
        ),
        (
            ["--base", "small.yaml", "--encoders", "none", "none"],
            "small.yaml, given twice, would both train in",
        ),
        (
            ["small.yaml", "elsewhere.yaml"],
            "out_dir: .*elsewhere.yaml has there and .*small.yaml has results",
        ),
        (["small.yaml", "--baseline", "smal"], "--baseline smal: is not compared here; there are small"),
        (["small.yaml", "--split", "tets"], "--split tets: .* there are train, val, test"),
    ),
)
def test_what_cannot_be_compared_is_found_before_the_first_run(folder, capsys, words, said):
    (folder / "other").mkdir()
    (folder / "other" / "small.yaml").write_text(CONFIG.replace("layers: 1", "layers: 2"))
    (folder / "elsewhere.yaml").write_text(f"{CONFIG}out_dir: there\n")
    assert compare_command([*words, "dataset.dir", "data"]) == 2
    assert re.search(said, capsys.readouterr().err)
    assert not (folder / "results").exists()


def test_a_tag_of_the_users_is_kept_with_encoders():
    ((_, words),) = with_encoders(config.find("quickstart"), ["RWSE"], ["name_tag", "mine"])
    assert config.load(config.find("quickstart"), words).name_tag == "RWSE-mine"
