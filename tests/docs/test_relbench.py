"""The RelBench example, on a tiny database; it skips where relbench is not installed."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

pytest.importorskip("relbench", reason="needs relbench: pip install 'graphgps_pearl[relational]'")
pytest.importorskip("torch_frame", reason="needs pytorch-frame: pip install 'graphgps_pearl[relational]'")

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "relbench"
SMALL = ["--seeds=1", "--channels=16", "--samples=10", "--pe-layers=2", "--pe-width=8", "--batch-size=64"]


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"relbench_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    module("make_database").main(folder, weeks=5, groups=6, noise=0.0)
    return folder


def problem(shop: Path, task: str, hops: int = 4):
    return module("train").Problem(str(shop), task, hops, 128)


def test_relbench_reads_the_database(shop):
    import relbench
    from relbench.manifest import DatasetManifest, validate_dataset_manifest

    validate_dataset_manifest(DatasetManifest.load(shop / "manifest.yaml"), shop / "db")
    dataset = relbench.load_dataset(shop)
    assert dataset.get_task_names() == ["again", "refund"]
    assert len(dataset.get_db().table_dict) == 4
    rings = dataset.load_task("refund").get_table("test", mask_input_cols=False).df
    assert (len(rings), rings.refunds.sum()) == (6 * 16, 6 * 4)
    assert len(dataset.load_task("again").get_table("val").df) == 6 * 2


def test_columns_and_message_passing_do_not_tell_short_rings_from_long_ones(shop):
    """Colour refinement of the rows up to a seed time: customers of that week's rings, short and long, end
    with one colour."""
    data, day = problem(shop, "refund").data, 86_400
    joined = int(data["customer"].time.unique()[3])
    rows = {name: data[name].time <= joined + 6 * day for name in data.node_types}
    part = data.subgraph(rows)
    colour = {name: torch.zeros(int(rows[name].sum()), dtype=torch.long) for name in part.node_types}
    for _ in range(12):
        before, colour = colour, refined(part, colour)
    assert all(len(before[name].unique()) == len(colour[name].unique()) for name in colour)  # it ended
    bought = part["purchase", "customer"].edge_index[1].bincount(minlength=part["customer"].num_nodes)
    seeds = (bought == 2) & (part["customer"].time == joined)
    assert seeds.sum() == 6 * 16 and len(colour["customer"][seeds].unique()) == 1
    assert len(colour["customer"].unique()) > 2  # scouts, and weeks whose refunds are known


def refined(data, colour: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """One round: a row's colour and the multiset of its neighbours', by edge type."""
    seen: dict[str, list[list]] = {name: [[int(c)] for c in value] for name, value in colour.items()}
    for kind in data.edge_types:
        around: list[list[int]] = [[] for _ in colour[kind[2]]]
        for u, v in data[kind].edge_index.T.tolist():
            around[v].append(int(colour[kind[0]][u]))
        for row, values in zip(seen[kind[2]], around, strict=True):
            row.append(tuple(sorted(values)))
    numbers = {
        name: {c: i for i, c in enumerate(sorted(set(map(tuple, rows))))} for name, rows in seen.items()
    }
    return {name: torch.tensor([numbers[name][tuple(row)] for row in rows]) for name, rows in seen.items()}


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_no_row_of_a_batch_is_later_than_its_seed_time(shop, split):
    case = problem(shop, "refund", hops=6)
    late = 0
    for batch, part in case.batches(case.tables[split], 64):
        limit = batch["customer"].seed_time
        stamps = case.tables[split].df["timestamp"].iloc[part.numpy()].to_numpy().astype("datetime64[s]")
        assert limit.tolist() == stamps.astype(np.int64).tolist()
        for name in case.data.node_types:
            assert (batch[name].time <= limit[batch[name].batch]).all()
        assert batch["purchase"].num_nodes > 2 * len(limit)  # there is something to see
        # What would leak: refunds of the seeds, which are what is to be predicted.
        late += int(torch.isin(case.data["refund"].time, limit.unique() + 86_400).any())
        assert not torch.isin(batch["refund", "customer"].edge_index[1], torch.arange(len(limit))).any()
    assert late or split == "test"  # the database of the test ends at its seed time


def test_pearl_learns_what_message_passing_does_not_see(shop):
    example = module("train")
    words = ["refund", "--encoding", "none", "bpearl", "--epochs", "8", "--hops", "4"]
    found = example.main(example.parse([str(shop), *words, *SMALL]))
    assert found["bpearl"][0] > 0.9 and found["none"][0] < 0.75


@pytest.mark.parametrize("encoding", ["none", "rpearl"])
def test_a_recommendation_is_scored_by_relbench(shop, encoding):
    example = module("train")
    words = ["again", "--encoding", encoding, "--epochs", "1", "--hops", "4"]
    found = example.main(example.parse([str(shop), *words, *SMALL]))
    assert 0 <= found[encoding][0] <= 1


def test_the_defaults_are_the_papers():
    options = module("train").parse(["shop", "refund"])
    assert (options.taps, options.pe_layers, options.pe_width, options.samples) == (7, 5, 40, 120)
