"""Subgraphs as of a time."""

import pytest
import torch
from torch_geometric.data import HeteroData

from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.relational import HeteroPEARL, TemporalSampler

TYPES = ("user", "order", "item")


def database(seed: int = 0, users: int = 15, orders: int = 120, items: int = 9) -> HeteroData:
    """Orders of a user and an item each, at times 0 to 99; users have no time stamps, items early ones."""
    torch.manual_seed(seed)
    data = HeteroData()
    data["user"].x = torch.randn(users, 2)
    data["order"].x, data["order"].time = torch.randn(orders, 2), torch.randint(100, (orders,))
    data["item"].x, data["item"].time = torch.randn(items, 2), torch.randint(30, (items,))
    for name, count in (("user", users), ("item", items)):
        edges = torch.stack((torch.arange(orders), torch.randint(count, (orders,))))
        data["order", name, name].edge_index = edges
        data[name, f"rev_{name}", "order"].edge_index = edges.flip(0)
    return data


def reached(data: HeteroData, user: int, time: int, hops: int) -> dict[str, set[int]]:
    """What the sampler promises, row by row."""
    found: dict[str, set[int]] = {"user": {user}, "order": set(), "item": set()}
    for _ in range(hops):
        before = {name: set(rows) for name, rows in found.items()}
        for source, relation, target in data.edge_types:
            for u, v in data[source, relation, target].edge_index.T.tolist():
                late = "time" in data[source] and data[source].time[u] > time
                if v in before[target] and not late:
                    found[source].add(u)
    return found


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_subgraph_has_all_rows_within_the_hops_and_up_to_the_time(hops) -> None:
    data = database()
    seeds, times = torch.tensor([3, 3, 7, 0]), torch.tensor([20, 60, 60, 0])
    batch = TemporalSampler(data, hops, num_neighbors=0)("user", seeds, times)
    torch.testing.assert_close(batch["user"].n_id[:4], seeds)
    for i, (user, time) in enumerate(zip(seeds.tolist(), times.tolist(), strict=True)):
        for name, rows in reached(data, user, time, hops).items():
            found = batch[name].n_id[batch[name].batch == i].tolist()
            assert len(found) == len(set(found)) and set(found) == rows
    for name in TYPES:
        torch.testing.assert_close(batch[name].x, data[name].x[batch[name].n_id])
    assert batch["order"].time.max() <= 60 < data["order"].time.max()


def test_nothing_later_than_the_seed_time_changes_what_a_model_sees() -> None:
    """Rows after the seed time are changed, added and removed: features, keys and encodings stay."""
    torch.manual_seed(0)
    pe = HeteroPEARL(TYPES, 4, BPEARL(4, hidden_dim=4, num_layers=2)).double().eval()
    data, changed = database(), database()
    late = data["order"].time > 50
    assert 20 < late.sum() < 100
    changed["order"].x[late] += 1
    for name, count in (("user", 15), ("item", 9)):
        edges = changed["order", name, name].edge_index
        edges[1, late] = torch.randint(count, (int(late.sum()),))
        changed[name, f"rev_{name}", "order"].edge_index = edges.flip(0)
    time = torch.full((15,), 50)
    first, second = (TemporalSampler(d, 4, 3)("user", torch.arange(15), time) for d in (data, changed))
    for name in TYPES:
        assert first[name].n_id.equal(second[name].n_id)
        assert first[name].x.equal(second[name].x)
        torch.testing.assert_close(pe(first)[name], pe(second)[name], rtol=0, atol=0)


def test_the_edges_are_those_of_the_database_in_both_directions() -> None:
    data = database()
    batch = TemporalSampler(data, 3)("user", torch.tensor([1, 2]), torch.tensor([90, 40]))
    for kind in data.edge_types:
        source, _, target = kind
        edges = batch[kind].edge_index
        assert batch[source].batch[edges[0]].equal(batch[target].batch[edges[1]])
        numbers = torch.stack((batch[source].n_id[edges[0]], batch[target].n_id[edges[1]]))
        whole = set(map(tuple, data[kind].edge_index.T.tolist()))
        assert edges.shape[1] >= 10 and set(map(tuple, numbers.T.tolist())) <= whole
    forward, backward = batch["order", "user"].edge_index, batch["user", "order"].edge_index
    assert set(map(tuple, forward.T.tolist())) == set(map(tuple, backward.flip(0).T.tolist()))


def test_of_too_many_neighbours_the_latest_allowed_are_followed() -> None:
    data = database()
    orders = data["order", "user"].edge_index
    batch = TemporalSampler(data, 1, num_neighbors=2)("user", torch.tensor([4]), torch.tensor([70]))
    times = data["order"].time[orders[0, orders[1] == 4]]
    latest = times[times <= 70].sort(descending=True).values[:2]
    assert len(times) > 4 and batch["order"].time.tolist() == latest.tolist()


def test_edges_in_32_bits_are_the_same_edges() -> None:
    """Rows and times together are more than 32 bits count."""
    data, size = HeteroData(), 50_000
    data["user"].num_nodes, data["order"].time = size, torch.arange(size)
    seeds = torch.tensor([size - 1, 3])
    for dtype in (torch.int64, torch.int32):
        data["order", "of", "user"].edge_index = torch.arange(size, dtype=dtype).expand(2, -1)
        batch = TemporalSampler(data, 1)("user", seeds, torch.tensor([size, size]))
        assert batch["order"].n_id.tolist() == seeds.tolist()


def test_attributes_that_are_not_rows_stay_out() -> None:
    data = database()
    data["user"].scale, data["user"].title = torch.tensor(2.0), "u" * 15
    batch = TemporalSampler(data, 1)("user", torch.tensor([3]), torch.tensor([50]))
    assert "scale" not in batch["user"] and "title" not in batch["user"]
    assert torch.equal(batch["user"].x[0], data["user"].x[3])


def test_mistakes_are_named() -> None:
    sampler = TemporalSampler(database(), 2)
    with pytest.raises(ValueError, match="'page' is none of the node types user, order, item"):
        sampler("page", torch.tensor([0]), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"row \d+ of order is later than its seed time -1"):
        sampler("order", torch.tensor([0]), torch.tensor([-1]))
    for seed in (-1, 15):
        with pytest.raises(ValueError, match=f"seed {seed}: user has rows 0 to 14"):
            sampler("user", torch.tensor([0, seed]), torch.tensor([50, 50]))
    with pytest.raises(ValueError, match=r"\[1\] seeds of user with times of \[2\]"):
        sampler("user", torch.tensor([0]), torch.tensor([50, 50]))
    with pytest.raises(ValueError, match="num_hops = 0"):
        TemporalSampler(database(), 0)
