"""RelBench's reference model with and without PEARL, on a database in RelBench's format.

    python docs/examples/relbench/make_database.py shop
    python docs/examples/relbench/train.py shop refund --encoding none rpearl bpearl

Columns become vectors (PyTorch Frame), time stamps are encoded relative to the seed's, PEARL is added, then
follow heterogeneous GraphSAGE layers on the subgraph of rows up to the seed time. Entity tasks (binary,
regression) read the seed; recommendation tasks mark the seed and score the rows of the target table in its
subgraph. RelBench's own evaluators give the numbers. Defaults are RelBench's and, for PEARL, the paper's.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import relbench
import torch
from relbench.base import RecommendationTask, Table, TaskType
from relbench.modeling.graph import make_pkey_fkey_graph
from relbench.modeling.nn import HeteroEncoder, HeteroGraphSAGE, HeteroTemporalEncoder
from relbench.modeling.utils import get_stype_proposal
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import MLP
from torch_geometric.seed import seed_everything

from graphgps_pearl import BPEARL, RPEARL
from graphgps_pearl.relational import HeteroPEARL, TemporalSampler

ENCODINGS = ("none", "rpearl", "bpearl")
LOSSES = {
    TaskType.BINARY_CLASSIFICATION: nn.functional.binary_cross_entropy_with_logits,
    TaskType.REGRESSION: nn.functional.l1_loss,
    TaskType.RECOMMENDATION: nn.functional.binary_cross_entropy_with_logits,
}


def seconds(column: pd.Series) -> Tensor:
    """Time stamps in seconds. Columns may differ in their unit: pandas 3 has several."""
    return torch.from_numpy(column.to_numpy().astype("datetime64[s]").astype(np.int64))


class Problem:
    """A task of a database: the graph of its rows, and batches of seeds with their targets."""

    def __init__(self, folder: str, name: str, hops: int, neighbors: int) -> None:
        self.task = relbench.load_dataset(folder).load_task(name)
        if self.task.task_type not in LOSSES:
            raise SystemExit(
                f"{name} is of type {self.task.task_type.value}; offered: {[t.value for t in LOSSES]}"
            )
        database = self.task.get_db()
        self.data, self.stats = make_pkey_fkey_graph(database, get_stype_proposal(database))
        for table, rows in database.table_dict.items():
            if rows.time_col is not None:
                self.data[table].time = seconds(rows.df[rows.time_col])
        self.recommends = isinstance(self.task, RecommendationTask)
        self.source = self.task.src_entity_table if self.recommends else self.task.entity_table
        self.answers = self.task.dst_entity_table if self.recommends else self.source
        self.sampler = TemporalSampler(self.data, hops, neighbors)
        self.tables = {split: self.task.get_table(split) for split in ("train", "val", "test")}

    def batches(self, table: Table, size: int, shuffle: bool = False) -> Iterator[tuple[HeteroData, Tensor]]:
        """Subgraphs of the table's rows as of their time stamps, and the rows' positions in the table."""
        column = self.task.src_entity_col if self.recommends else self.task.entity_col
        seeds, time = torch.tensor(table.df[column].to_numpy()), seconds(table.df[table.time_col])
        rows = torch.randperm(len(seeds)) if shuffle else torch.arange(len(seeds))
        for part in rows.split(size):
            yield self.sampler(self.source, seeds[part], time[part]), part

    def targets(self, batch: HeteroData, table: Table, part: Tensor) -> Tensor:
        """Of the seeds; of a recommendation, for every candidate whether it is right."""
        rows = table.df.iloc[part.numpy()]
        if not self.recommends:
            return torch.tensor(rows[self.task.target_col].to_numpy(), dtype=torch.float)
        answers = batch[self.answers]
        right = {(i, item) for i, items in enumerate(rows[self.task.dst_entity_col]) for item in items}
        pairs = zip(answers.batch.tolist(), answers.n_id.tolist(), strict=True)
        return torch.tensor([float(pair in right) for pair in pairs])

    def predictions(self, batch: HeteroData, scores: Tensor) -> np.ndarray:
        """What RelBench's evaluator takes: a number for each seed, or its best k rows of the target table."""
        if not self.recommends:
            return scores.numpy()
        answers, size = batch[self.answers], batch[self.source].batch_size
        table = torch.full((size, self.data[self.answers].num_nodes), -torch.inf)
        table[answers.batch, answers.n_id] = scores
        return table.topk(self.task.eval_k).indices.numpy()


class Model(nn.Module):
    """Rows to vectors, encodings added, GraphSAGE, one number for each row that answers."""

    def __init__(
        self, problem: Problem, channels: int, layers: int, encoding: RPEARL | BPEARL | None
    ) -> None:
        super().__init__()
        data = problem.data
        names = {table: data[table].tf.col_names_dict for table in data.node_types}
        sizes = {"channels": channels, "num_layers": 4}
        self.source, self.answers = problem.source, problem.answers
        self.columns = HeteroEncoder(channels, names, problem.stats, torch_frame_model_kwargs=sizes)
        self.time = HeteroTemporalEncoder(
            [name for name in data.node_types if "time" in data[name]], channels
        )
        self.pearl = HeteroPEARL(data.node_types, channels, encoding) if encoding is not None else None
        self.seed = nn.Parameter(torch.randn(channels)) if problem.recommends else None
        self.gnn = HeteroGraphSAGE(data.node_types, data.edge_types, channels, "sum", layers)
        norm = "layer_norm" if problem.recommends else "batch_norm"
        self.head = MLP(channels, out_channels=1, norm=norm, num_layers=1)

    def forward(self, batch: HeteroData) -> Tensor:
        """Scores of the seeds or, in a recommendation, of all rows of the target table."""
        seeds = batch[self.source].batch_size
        x = self.columns(batch.tf_dict)
        added = [self.time(batch[self.source].seed_time, batch.time_dict, batch.batch_dict)]
        added += [self.pearl(batch)] if self.pearl is not None else []
        for columns in added:
            x = {name: x[name] + columns[name] if name in columns else x[name] for name in x}
        if self.seed is not None:
            marked = (torch.arange(len(x[self.source])) < seeds)[:, None]
            x[self.source] = x[self.source] + marked * self.seed
        rows = self.gnn(x, batch.edge_index_dict)[self.answers]
        return self.head(rows if self.seed is not None else rows[:seeds]).flatten()


def encoding_of(name: str, options: argparse.Namespace) -> RPEARL | BPEARL | None:
    """The named encoding."""
    width, layers, taps = options.pe_width, options.pe_layers, options.taps
    if name == "rpearl":
        return RPEARL(width, num_samples=options.samples, hidden_dim=width, num_layers=layers, num_taps=taps)
    return BPEARL(width, hidden_dim=width, num_layers=layers, num_taps=taps) if name == "bpearl" else None


@torch.no_grad()
def evaluate(model: Model, problem: Problem, split: str, size: int) -> float:
    """RelBench's metric of the task."""
    model.eval()
    table = problem.tables[split]
    found = [problem.predictions(batch, model(batch)) for batch, _ in problem.batches(table, size)]
    # RelBench keeps the test's answers to itself: its evaluator reads them.
    result = problem.task.evaluate(np.concatenate(found), None if split == "test" else table)
    return float(next(iter(result.values())))


def train(problem: Problem, name: str, seed: int, options: argparse.Namespace) -> float:
    """The test metric at the epoch that is best in validation."""
    seed_everything(seed)
    model = Model(problem, options.channels, options.layers, encoding_of(name, options))
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    loss_of = LOSSES[problem.task.task_type]
    sign = -1 if problem.task.task_type is TaskType.REGRESSION else 1  # of errors, less is better
    best, kept, table = -np.inf, copy.deepcopy(model.state_dict()), problem.tables["train"]
    for _ in range(options.epochs):
        model.train()
        for batch, part in problem.batches(table, options.batch_size, shuffle=True):
            optimizer.zero_grad()
            loss_of(model(batch), problem.targets(batch, table, part)).backward()
            optimizer.step()
        value = sign * evaluate(model, problem, "val", options.batch_size)
        if value > best:
            best, kept = value, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    return evaluate(model, problem, "test", options.batch_size)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("database", help="a folder, or the name of one of RelBench's databases")
    parser.add_argument("task")
    parser.add_argument("--encoding", nargs="+", choices=ENCODINGS, default=list(ENCODINGS))
    parser.add_argument("--seeds", type=int, default=5)
    numbers: dict[str, tuple[Any, str]] = {
        "--epochs": (10, "passes over the training table"),
        "--batch-size": (512, "seeds of a step"),
        "--lr": (0.005, "Adam's learning rate"),
        "--channels": (128, "width of the model"),
        "--layers": (2, "GraphSAGE layers"),
        "--hops": (2, "foreign keys followed from a seed"),
        "--neighbors": (128, "rows followed from a row, of each kind: the latest"),
        "--samples": (120, "M of R-PEARL"),
        "--taps": (7, "K of PEARL"),
        "--pe-layers": (5, "GIN layers of PEARL"),
        "--pe-width": (40, "width of PEARL"),
    }
    for name, (value, text) in numbers.items():
        parser.add_argument(name, type=type(value), default=value, help=f"{text} ({value})")
    return parser.parse_args(words)


def main(options: argparse.Namespace) -> dict[str, list[float]]:
    """Train with each encoding and seed; the test metrics by encoding."""
    problem = Problem(options.database, options.task, options.hops, options.neighbors)
    found: dict[str, list[float]] = {}
    for name in options.encoding:
        found[name] = [train(problem, name, seed, options) for seed in range(options.seeds)]
        values = np.array(found[name])
        metric = problem.task.metrics[0].__name__
        spread = f" ± {values.std(ddof=1):.3f} over {len(values)} seeds" if len(values) > 1 else ""
        print(f"{options.task}, {name}: test {metric} {values.mean():.3f}{spread}", flush=True)
    return found


if __name__ == "__main__":
    main(parse())
