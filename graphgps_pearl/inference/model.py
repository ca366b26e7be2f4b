"""A trained model ready for use: SMILES in; predictions, or the encodings themselves, out.

Molecules are sorted by size and cut into batches that are bounded in atoms and in pairs of atoms (what
attention and B-PEARL cost), then put back in order. In evaluation no module looks across the graphs of a
batch, so neither the batch size nor the order of the rows changes a result beyond float rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from yacs.config import CfgNode

from graphgps_pearl import encoders
from graphgps_pearl.data import BadRowError
from graphgps_pearl.data.sampler import Bounds, cut
from graphgps_pearl.encoders import PosEncEncoder
from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.escaping import printable
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.featurise import featuriser, prepare_graph
from graphgps_pearl.vocabulary import NAME_LENGTH, NAME_WORDS

BATCH_SIZE = 256
#: Tables of random samples that predictions are averaged over where a model draws some and nothing is said.
TABLES = 4
_BOUNDS = Bounds(max_nodes=20_000, max_pairs=400_000)

Notify = Callable[[int], object]


@dataclass
class Predictions:
    """Predictions in the order of the SMILES: ``values`` [n, D] with NaN where a molecule has none.

    ``columns`` names the D values, ``spread`` [n, D] is the standard deviation over tables of random samples
    (None where the model draws none, or one table was used), ``errors`` maps rows to reasons.
    """

    smiles: list[str]
    columns: tuple[str, ...]
    values: NDArray[np.float64]
    spread: NDArray[np.float64] | None = None
    errors: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.smiles)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)

    def __str__(self) -> str:
        lines = ["  ".join(("SMILES", *self.columns))]
        for row, smiles in enumerate(self.smiles):
            cells = [self.errors[row]] if row in self.errors else [f"{v:.4f}" for v in self.values[row]]
            lines.append("  ".join(map(printable, (smiles, *cells))))
        return "\n".join(lines)


@dataclass
class Encodings:
    """Positional encodings: one array [n_i, dim_pe] for every molecule and encoder, by its atoms.

    ``arrays[name][i]`` has no rows where molecule i could not be read; ``errors`` says why.
    """

    smiles: list[str]
    arrays: dict[str, list[NDArray[np.float32]]]
    errors: dict[int, str] = field(default_factory=dict)


class Model:
    """A network with its config and the facts of its data.

    Args:
        cfg: the resolved config.
        facts: sizes, target names and statistics.
        network: batch to (prediction, target).
        device: where it runs.
        trained: False for the random weights of a config that was never trained.
    """

    def __init__(
        self,
        cfg: CfgNode,
        facts: ModelFacts,
        network: nn.Module,
        device: str | torch.device = "cpu",
        trained: bool = True,
    ) -> None:
        self.cfg, self.facts, self.trained = cfg, facts, trained
        self.device = torch.device(device)
        self.network = network.to(self.device).eval()

    def __repr__(self) -> str:
        return f"Model({self.facts.name}: {self.facts.dataset}, {', '.join(self.facts.columns)})"

    @property
    def draws_samples(self) -> bool:
        """Whether predictions depend on a table of random numbers (R-PEARL, random identifiers)."""
        return bool(_drawing_modules(self.network))

    @torch.inference_mode()
    def predict(
        self,
        smiles: Sequence[str],
        *,
        tables: int | None = None,
        batch_size: int = BATCH_SIZE,
        notify: Notify | None = None,
    ) -> Predictions:
        """Predict the targets of molecules, in their original units; probabilities for classes.

        Args:
            smiles: the molecules; one that cannot be read gets NaN and a reason.
            tables: tables of random samples to average over, and to take the spread of; 1 is what the
                evaluation in training does. Left out: 4 if the model draws samples. No meaning otherwise.
            batch_size: most molecules in a batch.
            notify: called with the number of molecules just done.
        """
        _require_list(smiles, "predict")
        tables = self._tables(tables)
        graphs, _, errors = self._graphs(smiles, notify)
        rows = list(graphs)
        outputs = np.full((tables, len(smiles), self.facts.dim_out), np.nan)
        for batch, members in self._batches(list(graphs.values()), batch_size):
            where = [rows[i] for i in members]
            with _own_error(where, errors):
                for table in range(tables):
                    with _table_of_samples(self.network, table):
                        outputs[table, where] = self._quantities(self.outputs(batch)).cpu().numpy()
            if notify is not None:
                notify(len(members))
        for row in rows:
            if row not in errors and not np.isfinite(outputs[:, row]).all():
                errors[row] = "the model gives a number that is not finite"
                outputs[:, row] = np.nan
        spread = outputs.std(axis=0, ddof=1) if tables > 1 else None
        return Predictions(list(smiles), self.facts.columns, outputs.mean(axis=0), spread, errors)

    @torch.inference_mode()
    def predict_graphs(
        self, graphs: Sequence[Data], *, tables: int | None = None, batch_size: int = BATCH_SIZE
    ) -> list[NDArray[np.float64]]:
        """Predict for graphs as the dataset of the training has them.

        Args:
            graphs: with ``x`` [N, dim_in], ``edge_index``, ``edge_attr`` where the training had it, for edge
                tasks ``edge_index_labeled``, and for parts of one large graph (``dataset.subgraph_hops`` or
                ``_parts``) ``n_id`` [N], the nodes' numbers in it.
            tables: as for :meth:`predict`.
            batch_size: most graphs in a batch.

        Returns:
            One array per graph: [D] for graph tasks, [N, D] for nodes, [L, 1] for pairs of nodes.
        """
        if isinstance(graphs, Data):  # a batch is one, too
            raise UserError(
                "predict_graphs wants a list of graphs; write predict_graphs([data]), or for a batch "
                "predict_graphs(batch.to_data_list())"
            )
        tables = self._tables(tables)
        context = (self.cfg, self.facts, encoders.required_transforms(self.cfg))
        prepared = [prepare_graph(graph, i, *context) for i, graph in enumerate(graphs)]
        outputs: list[Any] = [0.0] * len(prepared)
        for batch, members in self._batches(prepared, batch_size):
            for table in range(tables):
                try:
                    with _table_of_samples(self.network, table):
                        values = self._quantities(self.outputs(batch)[:, : self.facts.dim_out]).cpu().numpy()
                except DataError as error:
                    if len(members) > 1:
                        raise
                    raise DataError(f"graph {members[0]}: {error}") from error  # too large to share a batch
                for i, part in zip(members, np.split(values, self._cuts(batch, len(values))), strict=True):
                    outputs[i] = outputs[i] + (part[0] if self.facts.task == "graph" else part) / tables
        return outputs

    def outputs(self, batch: Batch) -> Tensor:
        """What the head gives; the batch stays as it was, also where a network of GraphGym writes into it."""
        return self.network(copy.copy(batch))[0]

    def _cuts(self, batch: Batch, rows: int) -> NDArray[np.int64]:
        """Where the rows of the second, third, ... graph begin among the outputs of a batch."""
        if self.facts.task == "graph":
            return np.arange(1, rows)
        index = batch.batch if self.facts.task == "node" else batch.batch[batch.edge_index_labeled[0]]
        return np.searchsorted(index.cpu().numpy(), np.arange(1, batch.num_graphs))

    @torch.inference_mode()
    def encode(
        self, smiles: Sequence[str], *, batch_size: int = BATCH_SIZE, notify: Notify | None = None
    ) -> Encodings:
        """The positional encodings of every atom, before the network mixes them with anything else."""
        _require_list(smiles, "encode")
        found = self.positional_encoders()
        if not found:
            raise UserError(
                f"{self.facts.name} has no positional encoding: its node encoder is "
                f"{self.cfg.dataset.node_encoder_name}"
            )
        graphs, orders, errors = self._graphs(smiles, notify)
        rows = list(graphs)
        arrays = {
            name: [np.zeros((0, self.cfg[f"posenc_{name}"].get("dim_pe", 0)), np.float32) for _ in smiles]
            for name in found
        }
        for batch, members in self._batches(list(graphs.values()), batch_size):
            where, sizes = [rows[i] for i in members], batch.ptr.diff().tolist()
            with _own_error(where, errors):
                parts = {name: e.encode(batch).float().cpu().split(sizes) for name, e in found.items()}
                for name in parts:
                    for row, part in zip(where, parts[name], strict=True):
                        arrays[name][row] = part.numpy()[np.argsort(orders[row])]
            if notify is not None:
                notify(len(members))
        return Encodings(list(smiles), arrays, errors)

    def positional_encoders(self) -> dict[str, PosEncEncoder]:
        """The network's positional encoders by name."""
        return {m.name: m for m in self.network.modules() if isinstance(m, PosEncEncoder)}

    def _tables(self, tables: int | None) -> int:
        if tables is None:
            return TABLES if self.draws_samples else 1
        if tables < 1:
            raise UserError(f"tables: expected a whole number from 1 up, not {tables}")
        return tables if self.draws_samples else 1

    def _graphs(
        self, smiles: Sequence[str], notify: Notify | None
    ) -> tuple[dict[int, Data], dict[int, list[int]], dict[int, str]]:
        """Graphs, the numbers of their nodes' atoms in the SMILES, and reasons, each by row."""
        graph_of = featuriser(self.cfg, self.facts)
        graphs: dict[int, Data] = {}
        orders: dict[int, list[int]] = {}
        errors: dict[int, str] = {}
        for row, text in enumerate(smiles):
            try:
                graphs[row], orders[row] = graph_of(text)
            except BadRowError as error:
                errors[row] = str(error)
                if notify is not None:
                    notify(1)
        return graphs, orders, errors

    def _batches(self, graphs: Sequence[Data], batch_size: int) -> Iterator[tuple[Batch, list[int]]]:
        """Batches of similar sizes, each with the numbers of its graphs."""
        if batch_size < 1:
            raise UserError(f"batch_size: expected a whole number from 1 up, not {batch_size}")
        sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
        order = np.argsort(sizes, kind="stable")
        for members in cut(order, sizes, batch_size, _BOUNDS, 1):
            yield Batch.from_data_list([graphs[i] for i in members]).to(self.device), members

    def _quantities(self, pred: Tensor) -> Tensor:
        """What the head gives [B, dim_out] as original units or probabilities."""
        pred = pred.double()
        if self.facts.task_type == "regression":
            if self.facts.target_mean is None or self.facts.target_std is None:
                return pred
            return pred * pred.new_tensor(self.facts.target_std) + pred.new_tensor(self.facts.target_mean)
        if self.facts.task_type == "classification":
            return pred.softmax(dim=-1)
        if self.facts.task_type == "subtoken_prediction":
            return pred.unflatten(1, (NAME_LENGTH, NAME_WORDS)).softmax(dim=-1).flatten(1)
        return pred.sigmoid()


@contextmanager
def _own_error(rows: Sequence[int], errors: dict[int, str]) -> Iterator[None]:
    """Turn the refusal of a molecule that is a batch of its own, such as one of too many atoms, into its
    reason."""
    try:
        yield
    except DataError as error:
        if len(rows) > 1:
            raise
        errors[rows[0]] = str(error)


def _require_list(smiles: Sequence[str], method: str) -> None:
    if isinstance(smiles, str):  # each of its characters could be a molecule
        raise UserError(f"{method} wants a list of SMILES; write {method}([{smiles!r}])")


def _drawing_modules(network: nn.Module) -> list[Any]:
    return [module for module in network.modules() if hasattr(module, "eval_seed")]


@contextmanager
def _table_of_samples(network: nn.Module, number: int) -> Iterator[None]:
    """Let the modules that draw samples read another table; number 0 is the one used in training."""
    modules = _drawing_modules(network)
    try:
        for module in modules:
            module.eval_seed += number
        yield
    finally:
        for module in modules:
            module.eval_seed -= number
