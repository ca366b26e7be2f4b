"""The largest batch is known before training; running out of memory is a line with the knobs that help."""

import pytest
import torch
from helpers.small_runs import checkpoint

from graphgps_pearl import config, data
from graphgps_pearl.registry import register
from graphgps_pearl.training import memory
from graphgps_pearl.training.run import prepare
from graphgps_pearl.training.task import GraphTask


@pytest.mark.parametrize("encoder", ["RPEARL", "BPEARL"])
@pytest.mark.parametrize("bound", [0, 150])
def test_the_estimate_of_the_largest_batch_is_close(runs, encoder, bound):
    file, _, words = runs.arguments()
    register()
    names = ["dataset.node_encoder_name", f"Atom+{encoder}", f"posenc_{encoder}.dim_pe", "4"]
    cfg = config.load(file, [*words, *names, "train.sampler_max_nodes", str(bound)])
    network, _, bundle = prepare(cfg)
    graphs = bundle.splits["train"]
    loader = data.make_loader(graphs, cfg, shuffle=True)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    found = memory.largest_batch(loader, network)
    on_gpu = memory.largest_batch(loader, network, "gpu")
    assert on_gpu.num_bytes == pytest.approx(memory.GPU_FACTOR * found.num_bytes, rel=1e-3)
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())

    worst = sorted(graphs, key=lambda graph: -graph.num_nodes)[:10]
    assert found.nodes == (bound or sum(graph.num_nodes for graph in worst))
    assert found.largest_graph == worst[0].num_nodes
    for epoch in range(20):
        loader.set_epoch(epoch)
        for batch in loader.sampler.batches():
            assert sum(graphs[i].num_nodes for i in batch) <= found.nodes
    kept = memory.kept_bytes(network, worst[:5] if bound else worst)
    assert kept <= 1.1 * found.num_bytes <= 4 * kept


def test_the_largest_batch_is_told_before_training_and_a_warning_if_memory_may_not_do(
    runs, caplog, monkeypatch
):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    assert runs.train("optim.max_epoch", "1") == 0
    assert "largest batch: 10 graphs" in caplog.text
    assert all(len(line) <= 80 for line in caplog.messages if line.startswith("largest"))
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any("train.batch_size" in line and "sampler_max_pairs" in line for line in warned)


def test_running_out_of_memory_is_one_line_and_what_was_saved_is_kept(runs, capsys, monkeypatch):
    original, count = GraphTask.training_step, [0]

    def step(self, batch, batch_idx):
        count[0] += 1
        loss = original(self, batch, batch_idx)
        return loss if count[0] != 6 else loss + torch.empty(10**15).sum()  # a petabyte

    with monkeypatch.context() as patch:
        patch.setattr(GraphTask, "training_step", step)
        assert runs.train() == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "out of memory (10 graphs" in line and "largest graph" in line and "error: epoch 2, batch" in line
    for knob in ("train.batch_size", "train.sampler_max_pairs", "chunk_size", "the same command continues"):
        assert knob in line
    assert checkpoint(runs.path())["position"] == {"epoch": 1, "batches": 0}
    assert runs.train() == 0


def test_out_of_memory_is_told_from_other_errors():
    assert memory.is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert memory.is_out_of_memory(MemoryError())
    assert not memory.is_out_of_memory(RuntimeError("shapes do not match"))
    assert (memory.free_bytes("cpu") or 1) > 0
