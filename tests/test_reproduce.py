"""scripts/reproduce.py: what it expects is what runs.csv says, and a run is compared with it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from graphgps_pearl import config

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
HEAD = "dataset,config,overrides,seed,epochs,metric,validation,test\n"


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path, str(SCRIPTS)])
    return importlib.import_module("reproduce")


def test_every_written_run_has_a_config_that_loads(reproduce: ModuleType) -> None:
    runs = reproduce.read_runs(reproduce.RUNS)
    assert len(runs) == len({(run.kind, run.seed) for run in runs}) > 10
    folders = set()
    for run in runs:
        _, file, *words = run.command()
        cfg = config.load(file, words)
        folders.add((run.config, cfg.name_tag, cfg.seed))
        assert (cfg.optim.max_epoch, cfg.seed) == (run.epochs, run.seed)
        assert cfg.metric_best == run.metric
    assert len(folders) == len(runs)


def test_deviations_are_those_between_seeds(reproduce: ModuleType) -> None:
    Run = reproduce.Run
    two = [Run("d", "a", "", seed, 30, "mae", 1.0, test) for seed, test in ((0, 0.1), (1, 0.3))]
    one, other = Run("d", "b", "", 0, 30, "mae", 1.0, 0.5), Run("e", "b", "", 0, 30, "mae", 1.0, 0.5)
    runs = [*two, one, other]
    assert reproduce.deviation(two[0], runs)[0] == pytest.approx(0.2 / 2**0.5)
    assert reproduce.deviation(one, runs)[0] == pytest.approx(0.2 / 2**0.5)
    assert reproduce.deviation(other, runs)[0] != reproduce.deviation(other, runs)[0]  # NaN
    assert "nan" not in reproduce.show(other, runs) and "unknown" in reproduce.show(other, runs)


def test_a_note_is_shown(reproduce: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(
        HEAD.replace("\n", ",note\n") + "d,quickstart,,0,1,mae,1,2,older norms\nd,b,,0,1,mae,1,2,\n"
    )
    noted, plain = reproduce.read_runs(file)
    assert "validation 1 (older norms)\n" in reproduce.show(noted, [noted, plain])
    assert plain.note == "" and "validation 1\n" in reproduce.show(plain, [noted, plain])


def test_a_run_is_trained_and_compared(
    reproduce: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "dataset.subset 60 gt.layers 1 optim.num_warmup_epochs 0"
    file = tmp_path / "runs.csv"
    words = ["out_dir", str(tmp_path / "results"), "dataset.dir", str(tmp_path / "data")]

    def write(tests: tuple[float, float]) -> None:
        rows = [f"wehi,quickstart,{small},{seed},1,mae,1,{test}\n" for seed, test in enumerate(tests)]
        file.write_text(HEAD + "".join(rows))

    write((2, 900))
    reproduce.main(["quickstart", "--seed", "0", *words], file)
    assert "as expected" in capsys.readouterr().out.splitlines()[-1]
    write((900, 900.1))
    with pytest.raises(SystemExit):
        reproduce.main(["quickstart", "--seed", "0", *words], file)
    assert "not as expected" in capsys.readouterr().out.splitlines()[-1]
    with pytest.raises(SystemExit, match="2 runs fit"):
        reproduce.main(["quickstart"], file)


def test_the_test_split_of_drugood_is_compared(reproduce: ModuleType, tmp_path: Path) -> None:
    run = next(run for run in reproduce.read_runs(reproduce.RUNS) if run.config == "drugood-none")
    words = ["out_dir", str(tmp_path)]
    _, file, *own = run.command(words)
    folder = tmp_path / f"drugood-none-{config.load(file, own).name_tag}" / str(run.seed)
    folder.mkdir(parents=True)
    best = {"iid_test_auc": 0.9, "ood_val_auc": 0.8, "ood_test_auc": 0.75}
    result = {"best": best, "splits": ["train", "iid_val", "iid_test", "ood_val", "ood_test"]}
    (folder / "result.json").write_text(json.dumps(result))
    assert reproduce.result_of(words, run) == 0.75


SAVES_SLOWLY = """
import pathlib, signal, sys, time
def save(number, frame):
    time.sleep(1)
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(130)
signal.signal(signal.SIGINT, save)
print("ready", flush=True)
time.sleep(60)
"""


def test_an_interrupted_run_is_given_the_time_to_save(tmp_path: Path) -> None:
    child = [sys.executable, "-c", SAVES_SLOWLY, str(tmp_path / "trace")]
    script = (
        f"import sys; sys.path.append({str(SCRIPTS)!r}); import reproduce; print(reproduce.train({child!r}))"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
    assert parent.communicate(timeout=60)[0] == "130\n"
    assert (tmp_path / "trace").read_text() == "saved"
