import copy

import pytest
import torch
from torch_geometric.data import Data

from graphgps_pearl.data import GraphTable, make_loader
from graphgps_pearl.errors import ConfigError


@pytest.fixture
def table() -> GraphTable:
    graphs = []
    for i in range(50):
        nodes = 2 + (7 * i) % 11
        edge_index = torch.stack([torch.arange(nodes), torch.arange(nodes).roll(1)])
        graphs.append(Data(x=torch.ones(nodes, 1), edge_index=edge_index, y=torch.tensor([[float(i)]])))
    return GraphTable.from_graphs(graphs)


@pytest.fixture
def cfg(make_cfg):
    cfg = make_cfg("embedded", "wehi-logp")
    cfg.train.batch_size = 8
    return cfg


def targets(loader) -> list[list[float]]:
    return [batch.y.flatten().tolist() for batch in loader]


@pytest.mark.parametrize("sampler", ["full_batch", "size_bucket"])
@pytest.mark.parametrize("workers", [0, 2])
def test_resuming_in_the_middle_goes_on_with_the_next_batch(table, cfg, sampler, workers) -> None:
    cfg.train.sampler, cfg.num_workers = sampler, workers
    whole = make_loader(table, cfg, shuffle=True)
    whole.set_epoch(3)
    expected = targets(whole)

    first = make_loader(table, cfg, shuffle=True)
    first.set_epoch(3)
    batches = iter(first)
    for _ in range(4):
        next(batches)
    state = copy.deepcopy(first.state_dict())
    assert state == {"epoch": 3, "batches": 4}  # what was handed out, not what workers fetched ahead

    second = make_loader(table, cfg, shuffle=True)
    second.load_state_dict(state)
    second.set_epoch(3)  # training loops name the epoch again; the position stays
    assert targets(second) == expected[4:]
    assert second.state_dict() == {"epoch": 3, "batches": len(expected)}
    assert targets(second) == expected  # the position held for one iteration
    second.set_epoch(4)
    assert second.state_dict() == {"epoch": 4, "batches": 0}
    assert targets(second) != expected


def test_a_state_of_another_epoch_is_dropped_when_the_epoch_changes(table, cfg) -> None:
    loader = make_loader(table, cfg, shuffle=True)
    loader.load_state_dict({"epoch": 0, "batches": 7})
    loader.set_epoch(1)
    assert len(targets(loader)) == len(loader) == 7


def test_batches_are_collated_as_pyg_does(table, cfg) -> None:
    batch = next(iter(make_loader(table, cfg, shuffle=False)))
    assert batch.num_graphs == 8 and batch.y.shape == (8, 1)
    assert batch.ptr.diff().tolist() == table.num_nodes()[:8].tolist()
    assert int(batch.edge_index.max()) == batch.num_nodes - 1


def test_iterating_moves_no_global_random_state(table, cfg) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    list(make_loader(table, cfg, shuffle=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_number_of_batches_is_not_promised_where_it_varies(table, cfg) -> None:
    cfg.train.sampler_max_nodes = 30
    loader = make_loader(table, cfg, shuffle=True)
    with pytest.raises(TypeError, match="differs between epochs"):
        len(loader)
    assert loader.num_batches() == len(targets(loader)) > 7
    assert all(sum(int(batch.num_nodes) for batch in [b]) <= 30 for b in loader)


def test_ranks_from_torchruns_environment(table, cfg, monkeypatch) -> None:
    alone = targets(make_loader(table, cfg, shuffle=True))
    monkeypatch.setenv("WORLD_SIZE", "2")
    shares = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        shares.append(targets(make_loader(table, cfg, shuffle=True)))
    assert [sorted(a + b) for a, b in zip(*shares, strict=True)] == [sorted(batch) for batch in alone]
    monkeypatch.setenv("WORLD_SIZE", "9")
    with pytest.raises(ConfigError, match=r"train\.batch_size: 8"):
        make_loader(table, cfg, shuffle=True)


def test_plain_lists_of_graphs_serve_too(table, cfg) -> None:
    assert targets(make_loader(list(table), cfg, shuffle=True)) == targets(
        make_loader(table, cfg, shuffle=True)
    )
