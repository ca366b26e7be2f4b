"""Interrupted at any batch and resumed equals never interrupted, bit for bit on CPU."""

import os
import shutil
import signal
import threading
from contextlib import contextmanager

import pytest
import torch
from helpers.small_runs import assert_same_run, checkpoint, numbers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from graphgps_pearl import data
from graphgps_pearl.runs.checkpoints import write_checkpoint
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training import checkpointer, recorder
from graphgps_pearl.training.recorder import Recorder
from graphgps_pearl.training.task import GraphTask


@pytest.fixture
def signal_at(monkeypatch):
    """Send this process a signal in the step that is the given one since the start of the (re)started run."""

    def at(step: int, number: int = signal.SIGTERM, method: str = "training_step") -> None:
        original, count = getattr(GraphTask, method), [0]

        def counted(self, *args, **kwargs):
            count[0] += 1
            if count[0] == step:
                os.kill(os.getpid(), number)
            return original(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(GraphTask, method, counted)
            yield

    return contextmanager(at)


EVERYTHING = (
    *("train.sampler", "size_bucket", "train.sampler_window", "2"),
    *("optim.scheduler", "reduce_on_plateau", "optim.schedule_patience", "0", "train.early_stopping", "2"),
)


def test_stopped_at_every_batch_and_resumed_is_never_stopped(runs, signal_at):
    runs.train(*EVERYTHING, tag="whole")
    positions = []
    for _ in range(12):
        with signal_at(1):
            code = runs.train(*EVERYTHING)
        assert code == 143
        positions.append(tuple(checkpoint(runs.path())["position"].values()))
    assert positions == [(epoch, batch) for epoch in range(3) for batch in (1, 2, 3, 4)]
    assert runs.train(*EVERYTHING) == 0
    assert_same_run(runs.path(), runs.path("whole"))


@pytest.mark.parametrize(
    "words",
    [
        ("optim.scheduler", "none", "optim.optimizer", "sgd"),
        ("optim.scheduler", "step", "optim.steps", "[1, 2]", "optim.optimizer", "adagrad"),
        ("optim.scheduler", "cos", "optim.optimizer", "adam"),
        ("optim.scheduler", "cosine_with_warmup", "optim.num_warmup_epochs", "2"),
        ("optim.scheduler", "linear_with_warmup", "optim.num_warmup_epochs", "2"),
        ("optim.scheduler", "reduce_on_plateau", "optim.schedule_patience", "0"),
        ("train.sampler_max_nodes", "150"),  # the number of batches differs between epochs
        ("train.eval_period", "2"),
        ("train.precision", "64"),
        ("train.precision", "bf16-mixed"),
        pytest.param(("num_workers", "1"), marks=pytest.mark.slow),
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_stopped_in_the_middle_of_an_epoch(runs, signal_at, words):
    runs.train(*words, tag="whole")
    with signal_at(6):
        assert runs.train(*words) == 143
    assert checkpoint(runs.path())["position"]["batches"] > 0
    assert runs.train(*words) == 0
    assert_same_run(runs.path(), runs.path("whole"))


def test_accumulated_gradients_are_never_cut_in_two(runs, signal_at):
    words = ("train.batch_size", "5", "optim.batch_accumulation", "3")  # 8 batches: steps after 3, 6 and 8
    runs.train(*words, tag="whole")
    stops = []
    for step in (1, 2, 2, 3):  # in the batches 1, 5, 8 of an epoch, and 3 of the next
        with signal_at(step):
            assert runs.train(*words) == 143
        stops.append(tuple(checkpoint(runs.path())["position"].values()))
    assert stops == [(0, 3), (0, 6), (0, 8), (1, 3)]
    assert runs.train(*words) == 0
    assert_same_run(runs.path(), runs.path("whole"))


@pytest.mark.parametrize("step", [1, 2])
def test_stopped_in_an_evaluation(runs, finished, signal_at, step):
    with signal_at(step, method="validation_step"):
        assert runs.train() == 143
    assert checkpoint(runs.path())["position"] == {"epoch": 0, "batches": 4}
    assert runs.train() == 0
    assert_same_run(runs.path(), finished)


def test_stopped_at_an_epochs_end(runs, finished, signal_at):
    with signal_at(1, method="epoch_values"):
        assert runs.train() == 143
    assert checkpoint(runs.path())["position"] == {"epoch": 1, "batches": 0}
    assert runs.train() == 0
    assert_same_run(runs.path(), finished)


def test_sigterm_and_ctrl_c_save_close_tensorboard_and_say_how_to_go_on(runs, signal_at, capsys):
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    for number, word in SIGNALS:
        with signal_at(6, number):
            assert runs.train(tag=word) == 128 + number
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert word in error and "the same command continues" in error
        assert checkpoint(runs.path(word))["position"] == {"epoch": 1, "batches": 2}
        assert not (runs.path(word) / "result.json").exists()
        events = EventAccumulator(str(runs.path(word))).Reload()
        assert [event.step for event in events.Scalars("val/mae")] == [0]
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers


def test_a_second_ctrl_c_does_not_wait(runs, monkeypatch):
    def impatient(self, batch, batch_idx):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the batch went on")

    monkeypatch.setattr(GraphTask, "training_step", impatient)
    assert runs.train() == 130
    assert not (runs.path() / "last.ckpt").exists()


def test_saves_every_so_many_batches(runs, monkeypatch):
    """What is lost to a power cut is at most the configured interval."""
    seen = []
    original = GraphTask.on_train_batch_start

    def look(self, batch, batch_idx):
        last = runs.path() / "last.ckpt"
        position = torch.load(last, weights_only=True)["position"] if last.exists() else {}
        seen.append((position.get("epoch", 0), position.get("batches", 0)))
        original(self, batch, batch_idx)

    monkeypatch.setattr(GraphTask, "on_train_batch_start", look)
    assert runs.train("train.ckpt_every_batches", "2", "optim.max_epoch", "2") == 0
    assert seen == [(0, 0), (0, 0), (0, 2), (0, 2), (1, 0), (1, 0), (1, 2), (1, 2)]
    seen.clear()
    assert runs.train("train.ckpt_every_seconds", "1e-9", "optim.max_epoch", "1", tag="seconds") == 0
    assert len(seen) == 4


def test_saves_after_the_next_step_where_gradients_are_accumulated(runs, monkeypatch):
    saved = []
    original = checkpointer.save_checkpoint

    def save(trainer, folder):
        saved.append(trainer.lightning_module.batches_done)
        original(trainer, folder)

    monkeypatch.setattr(checkpointer, "save_checkpoint", save)
    words = ("train.batch_size", "5", "optim.batch_accumulation", "3")  # 8 batches: steps after 3, 6 and 8
    assert runs.train(*words, "train.ckpt_every_batches", "5", "optim.max_epoch", "2") == 0
    assert saved == [6, 6]


def test_the_last_epoch_is_evaluated_whatever_the_period(runs):
    assert runs.train("train.eval_period", "2") == 0
    assert [row["val_mae"] != "" for row in numbers(runs.path())] == [False, True, True]


SIGNALS = ((signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP"), (signal.SIGINT, "interrupted"))


def test_a_signal_before_the_first_batch_or_after_the_last_is_told_alike(runs, finished, monkeypatch, capsys):
    moments = {
        "nothing of": (data, "load"),  # before training: the data is being prepared
        "saved, the same command": (Recorder, "on_train_end"),  # after the last epoch
        "saved, the same command continues": (Recorder, "summary"),  # after training: the result is written
    }
    for number, word in SIGNALS:
        for said, (owner, name) in moments.items():
            original = getattr(owner, name)

            def struck(*args, original=original, number=number, **kwargs):
                os.kill(os.getpid(), number)
                return original(*args, **kwargs)

            tag = f"{word}-{name}"
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, struck)
                assert runs.train(tag=tag) == 128 + number
            lines = capsys.readouterr().err.strip().splitlines()
            assert word in lines[-1] and said in lines[-1] and "the same command" in lines[-1]
            assert not any("Traceback" in line for line in lines)
    assert runs.train(tag=tag) == 0
    assert_same_run(runs.path(tag), finished)


def test_a_signal_while_the_event_file_is_opened_leaves_no_thread(runs, monkeypatch):
    class Struck(recorder.SummaryWriter):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(recorder, "SummaryWriter", Struck)
    assert runs.train() == 143
    assert not [t for t in threading.enumerate() if type(t).__name__ == "_AsyncWriterThread"]


@pytest.mark.parametrize(
    ("column", "loss"),
    [("val_mae", "val_loss"), ("val_my_metric", "val_loss"), ("ood_val_my_metric", "ood_val_loss")],
)
def test_the_loss_of_the_split_that_selects_is_known_whatever_the_metric_is_called(tmp_path, column, loss):
    columns = recorder.metric_columns(("mae", "my_metric"), ("train", "val", "ood_val", "test"))
    found = Recorder(RunFolder(tmp_path), columns, column, larger_is_better=True)
    assert found._loss_column == loss
    found.last_row = {column: 1.0, loss: 2.0, "grad_norm": 3.0}
    split = loss.removesuffix("_loss")
    tag = f"{split}/{column.removeprefix(f'{split}_')}"
    assert found.scalars() == {tag: 1.0, f"{split}/loss": 2.0, "training/grad_norm": 3.0}


def test_under_nohup_a_hangup_does_not_stop_the_run(runs, signal_at):
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signal_at(2, signal.SIGHUP):
            assert runs.train("optim.max_epoch", "1") == 0
    finally:
        signal.signal(signal.SIGHUP, former)


def test_more_epochs_for_a_finished_run_are_those_of_a_longer_run(runs, finished):
    assert runs.train("optim.max_epoch", "2") == 0
    assert runs.train("optim.max_epoch", "3") == 0
    assert_same_run(runs.path(), finished)


def test_rows_lost_or_altered_before_a_resume_are_written_again(runs, finished, signal_at):
    with signal_at(9):
        assert runs.train() == 143
    metrics = runs.path() / "metrics.csv"
    for damage in (b"epoch,val_mae\n0,\xff\n", b"", None):
        if damage is None:
            metrics.unlink()
        else:
            metrics.write_bytes(damage)
        with signal_at(1):
            assert runs.train() == 143
        assert [row["epoch"] for row in numbers(runs.path())] == ["0", "1"]
    assert runs.train() == 0
    assert_same_run(runs.path(), finished)


@pytest.mark.parametrize("position", [{"epoch": 1, "batches": 5}, {"epoch": 4, "batches": 0}])
def test_an_impossible_position_is_refused(runs, finished, capsys, position):
    shutil.copytree(finished, runs.path())
    (runs.path() / "result.json").unlink()
    last = runs.path() / "last.ckpt"
    write_checkpoint(last, {**checkpoint(runs.path()), "position": position})
    assert runs.train() == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "last.ckpt" in line and f"epoch {position['epoch'] + 1}" in line and "--overwrite" in line
