"""Several processes at the same global batch are one process; a job that loses one goes on later."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import children
from helpers.public_files import write_geom_gcn
from helpers.small_runs import SmallRuns, checkpoint, numbers, result, train

MAIN = Path(__file__).resolve().parents[2] / "main.py"
QUICKSTART = MAIN.with_name("configs") / "quickstart.yaml"

#: Nothing random in the network; 43 graphs in batches of 9: shares of 5 and 4, and a last batch of 4 and 3.
EXACT = (
    *("gt.dropout", "0.0", "gt.attn_dropout", "0.0", "dataset.subset", "54", "train.batch_size", "9"),
    *("dataset.node_encoder_name", "Atom+BPEARL", "posenc_BPEARL.dim_pe", "4"),
    *("posenc_BPEARL.hidden_dim", "4", "posenc_BPEARL.num_layers", "1", "optim.base_lr", "0.02"),
    *("train.precision", "64", "optim.max_epoch", "2", "dataset.node_encoder_bn", "True"),
)


def train_together(runs: SmallRuns, output: Path, *words: str, tag: str = "run", before=None) -> list[int]:
    """Exit codes of two processes that train one run."""
    processes = children.start_together(runs.arguments(*words, tag=tag), output, 2, before)
    for process in processes:
        process.join(120)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()  # those that wait for each other
    return codes


def values(run: Path) -> torch.Tensor:
    """All numbers of metrics.csv but rank correlations, which jump when two predictions change places."""
    rows = [[float(v) for k, v in row.items() if v and "spearman" not in k] for row in numbers(run)]
    return torch.tensor(rows, dtype=torch.float64)


def assert_close(a: Path, b: Path, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(values(a), values(b), rtol=tolerance, atol=tolerance)
    first, second = checkpoint(a)["state_dict"], checkpoint(b)["state_dict"]
    assert first.keys() == second.keys()
    for name, value in first.items():
        if name.endswith("num_batches_tracked"):  # a count that some norms do not keep, and none reads
            continue
        torch.testing.assert_close(value, second[name], rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("norm", ["batch", "graph"])
def test_two_processes_with_half_the_batch_are_one_with_the_whole(runs, tmp_path, norm):
    words = (*EXACT, "posenc_BPEARL.norm", norm)
    assert runs.train(*words, tag="one") == 0
    output = tmp_path / "output"
    assert train_together(runs, output, *words) == [0, 0], output.with_suffix(".0").read_text()
    assert_close(runs.path(), runs.path("one"))
    assert result(runs.path())["best"]["epoch"] == result(runs.path("one"))["best"]["epoch"]
    # Only the first process speaks and writes.
    assert "      2/2" in output.with_suffix(".0").read_text()
    assert "epoch" not in output.with_suffix(".1").read_text()
    assert len(list(runs.path().glob("events.out.*"))) == 1


NEIGHBOURHOODS = """
metric_best: accuracy
dataset:
  {format: PyG-WebKB, name: cornell, task: node, task_type: classification, check_totals: False,
   subgraph_hops: 1, node_encoder: True, node_encoder_name: LinearNode}
model: {type: GPSModel}
gt: {layer_type: GCN+Transformer, layers: 1, n_heads: 2, dim_hidden: 8}
gnn: {head: node, dim_inner: 8}
train: {batch_size: 9, eval_period: 1, precision: 64}
optim: {optimizer: adamW, base_lr: 0.01, max_epoch: 2, scheduler: none}
"""


@pytest.mark.parametrize("parts", [0, 6])
def test_two_processes_on_the_neighbourhoods_of_one_graph_are_one(tmp_path, parts):
    write_geom_gcn(tmp_path, "cornell", 1703)
    file, one, two = tmp_path / "nodes.yaml", tmp_path / "one" / "0", tmp_path / "two" / "0"
    file.write_text(NEIGHBOURHOODS)
    words = ["dataset.dir", str(tmp_path / "data"), "dataset.path", str(tmp_path)]
    words += ["dataset.subgraph_parts", str(parts), "train.batch_size", "4" if parts else "9"]
    assert train(file, one, words) == 0
    output = tmp_path / "output"
    processes = children.start_together((file, two, words), output, 2)
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0], output.with_suffix(".0").read_text()
    assert_close(two, one)


@pytest.mark.slow
def test_the_quickstart_in_two_processes_is_one_in_double_precision(runs, tmp_path):
    """18 steps of all that the config has but dropout; float32 differs by rounding (docs/scaling.md)."""
    words = (*("dataset.subset", "120", "train.batch_size", "16", "optim.max_epoch", "3"),)
    words += ("gt.attn_dropout", "0.0", "gt.dropout", "0.0", "gnn.dropout", "0.0", "train.precision", "64")
    words += ("dataset.dir", str(runs.dataset_dir))
    assert train(QUICKSTART, runs.path("one"), words) == 0
    output = tmp_path / "output"
    processes = children.start_together((QUICKSTART, runs.path(), list(words)), output, 2)
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0], output.with_suffix(".0").read_text()
    assert_close(runs.path(), runs.path("one"))


def stop_rank_1(rank: int) -> None:
    """In the second process, SIGTERM at its 6th batch."""
    _at_batch(rank == 1, 6, signal.SIGTERM)


def kill_rank_1(rank: int) -> None:
    """In the second process, kill -9 at its 8th batch."""
    _at_batch(rank == 1, 8, signal.SIGKILL)


def stop_in_evaluation() -> None:
    """SIGTERM at the first batch of an evaluation."""
    _at_batch(True, 1, signal.SIGTERM, "validation_step")


def _at_batch(armed: bool, number: int, signal_number: int, method: str = "training_step") -> None:
    from graphgps_pearl.training.task import GraphTask

    original, count = getattr(GraphTask, method), [0]

    def step(self, *args):
        count[0] += armed
        if count[0] == number:
            os.kill(os.getpid(), signal_number)
        return original(self, *args)

    setattr(GraphTask, method, step)


def test_a_signal_to_one_process_stops_all_at_the_same_batch_and_they_go_on(runs, tmp_path):
    words = ("gt.dropout", "0.2")  # R-PEARL's samples and dropout: random, and resumed exactly all the same
    output = tmp_path / "output"
    assert train_together(runs, output, *words, tag="whole") == [0, 0]
    assert train_together(runs, output, *words, before=stop_rank_1) == [143, 143]
    assert checkpoint(runs.path())["position"] == {"epoch": 1, "batches": 2}
    assert train_together(runs, output, *words) == [0, 0]
    assert numbers(runs.path()) == numbers(runs.path("whole"))
    assert_close(runs.path(), runs.path("whole"), tolerance=0.0)


def test_a_process_that_dies_ends_the_job_and_another_number_of_processes_goes_on(runs, tmp_path):
    assert runs.train(*EXACT, tag="one") == 0
    output = tmp_path / "output"
    first, second = train_together(runs, output, *EXACT, before=kill_rank_1)
    assert second == -signal.SIGKILL
    assert first == 2
    assert "error: another process of this run ended" in output.with_suffix(".0").read_text()
    assert checkpoint(runs.path())["position"] == {"epoch": 1, "batches": 0}
    assert runs.train(*EXACT) == 0
    assert_close(runs.path(), runs.path("one"))


def test_stopped_in_an_evaluation_and_continued_with_more_processes(runs, tmp_path):
    assert runs.train(*EXACT, tag="one") == 0
    output = tmp_path / "output"
    child = children.start(runs.arguments(*EXACT), output, stop_in_evaluation)
    child.join(120)
    assert child.exitcode == 143
    assert checkpoint(runs.path())["position"] == {"epoch": 0, "batches": 5}
    assert train_together(runs, output, *EXACT) == [0, 0], output.with_suffix(".0").read_text()
    assert_close(runs.path(), runs.path("one"))


def test_bounded_batches_are_not_continued_in_their_middle_with_another_number_of_processes(
    runs, tmp_path, capsys
):
    """They are other batches, so graphs would be left out or trained on twice."""
    words, output = ("train.sampler_max_nodes", "90"), tmp_path / "output"
    assert train_together(runs, output, *words, before=stop_rank_1) == [143, 143]
    batches = checkpoint(runs.path())["position"]["batches"]
    assert batches > 0
    assert runs.train(*words) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"after batch {batches} of an epoch by 2 processes, whose batches are not those of 1" in said
    assert "torchrun" in said
    assert train_together(runs, output, *words) == [0, 0]


def test_samples_differ_between_processes():
    from graphgps_pearl.training.task import step_seed

    seeds = {
        step_seed(0, epoch, batch, rank) for epoch in range(3) for batch in range(5) for rank in range(4)
    }
    assert len(seeds) == 3 * 5 * 4


def test_devices_without_processes_are_refused(runs, capsys):
    assert runs.train("devices", "2") == 2
    assert "torchrun --nproc_per_node 2" in capsys.readouterr().err


@pytest.mark.slow
def test_torchrun_as_a_user_starts_it(runs):
    assert runs.train(*EXACT, tag="one") == 0
    config, _, words = runs.arguments(*EXACT)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
        *(str(MAIN), "--cfg", str(config), "out_dir", str(runs.folder / "torchrun"), *words),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("results: ") == 1
    assert_close(runs.folder / "torchrun" / "small" / "0", runs.path("one"))
