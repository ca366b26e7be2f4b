"""What compare and search show of running jobs."""

import math

import pytest

from graphgps_pearl.experiments.jobs import Job
from graphgps_pearl.experiments.live import Live, Selection, read_progress

VALIDATION = Selection("val_mae", larger_is_better=False)


def job(folder, name: str, seed: int = 0, **settings) -> Job:
    return Job(folder / f"{name}.yaml", seed, (), folder / name / str(seed), 10, **settings)


def write(job: Job, values: list[float | None], seconds: float = 2.0, fold: int | None = None) -> None:
    path = job.folder if fold is None else job.folder.with_name(str(fold))
    path.mkdir(parents=True, exist_ok=True)
    rows = [f"{i},{seconds},{'' if v is None else v}" for i, v in enumerate(values)]
    (path / "metrics.csv").write_text("\n".join(["epoch,seconds,val_mae", *rows]) + "\n")


def test_progress_is_read_from_the_metrics(tmp_path):
    one = job(tmp_path, "a")
    assert math.isnan(read_progress(one, VALIDATION).left)
    write(one, [0.9, 0.5, None, 0.7])
    found = read_progress(one, VALIDATION)
    assert (found.epochs, found.of, found.value, found.best, found.best_epoch) == (4, 10, 0.7, 0.5, 2)
    assert found.left == pytest.approx(12)
    assert read_progress(one, Selection("val_mae", larger_is_better=True)).best == 0.9
    folds = job(tmp_path, "b", folds=(0, 1))
    write(folds, [0.1] * 10, fold=0)
    write(folds, [0.4], fold=1)
    found = read_progress(folds, VALIDATION)
    assert (found.epochs, found.of, found.best, found.best_epoch) == (11, 20, 0.4, 1)


def test_damaged_metrics_of_one_run_stop_no_comparison(tmp_path):
    one = job(tmp_path, "a")
    write(one, [0.9])
    (one.folder / "checksums.json").write_text('{"metrics.csv": ["0"]}')
    assert read_progress(one, VALIDATION).epochs == 0


def test_the_time_left_of_all_knows_what_is_ahead(tmp_path):
    slow, quick, later = job(tmp_path, "slow"), job(tmp_path, "quick"), job(tmp_path, "slow", 1)
    write(slow, [0.5] * 10, seconds=4.0)
    (slow.folder / "result.json").write_text("{}")
    write(quick, [0.5] * 5, seconds=1.0)
    live = Live(3, lambda _: VALIDATION, planned=[slow, quick, later], done=1)
    assert live.left() == pytest.approx(5 * 1.0 + 10 * 4.0)
    search = Live(4, lambda _: VALIDATION, planned=[quick], done=1)
    assert search.left() == pytest.approx(5 * 1.0 + 2 * 10 * 1.0)  # two trials that are not known yet


def test_lines_fit_and_lose_the_least_first(tmp_path, capsys):
    one = job(tmp_path, "a-config-with-a-rather-long-name")
    live = Live(12, lambda _: VALIDATION, planned=[one])
    live.started(one, tmp_path / "0.log")
    write(one, [0.9, 0.5])
    live.tick()
    line = live.line(one, 79)
    assert len(line) <= 79
    assert line.startswith("[1/12] epoch 2/10  val mae 0.5000, best 0.5000  16s left  all ")
    assert live.line(one, 20) == "[1/12] epoch 2/10"
    live.ended(one, f"done, {live.summary(one)}")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"[1/12] {one.name}: started, log {tmp_path / '0.log'}"
    assert said[1].startswith("[1/12] epoch 2/10  val mae 0.5000")  # no terminal: a line at each tenth
    assert said[2] == f"[1/12] {one.name}: done, val mae 0.5000 at epoch 2 of 2, 4s"
