"""Small trained models for the inference tests: a CSV of real molecules, two epochs, several encodings."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphgps_pearl import cli
from graphgps_pearl.data import molecules
from graphgps_pearl.data.datasets.wehi_logp import wehi_file

CONFIG = """
dataset:
  {{format: csv, name: atoms, path: {path}, target_columns: [atoms, rings], task: graph,
   task_type: regression,
   split_mode: standard, split_column: split, node_encoder: true, node_encoder_name: {encoder},
   node_encoder_bn: false, standardise: false,
   edge_encoder: true, edge_encoder_name: Bond, edge_encoder_bn: false}}
posenc_RPEARL: {{dim_pe: 8, hidden_dim: 8, num_layers: 2, num_samples: 8}}
posenc_BPEARL: {{dim_pe: 8, hidden_dim: 8, num_layers: 3}}
posenc_RWSE: {{dim_pe: 8, kernel: {{times_func: "range(1,9)"}}, model: Linear, raw_norm_type: BatchNorm}}
train: {{batch_size: 16, eval_period: 1}}
model: {{type: GPSModel, loss_fun: l1, graph_pooling: mean}}
gt: {{layer_type: GINE+Transformer, layers: 2, n_heads: 4, dim_hidden: 32}}
gnn: {{head: san_graph, dim_inner: 32}}
optim: {{optimizer: adamW, base_lr: 0.002, max_epoch: 2, scheduler: none}}
"""

Train = Callable[..., Path]


@pytest.fixture(scope="session")
def smiles() -> list[str]:
    """80 drug-like molecules."""
    with wehi_file().open(newline="") as lines:
        return [row[0] for row, _ in zip(csv.reader(lines), range(80), strict=False)]


@pytest.fixture(scope="session")
def table(smiles: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """These molecules as a CSV with two targets and a split."""
    file = tmp_path_factory.mktemp("table") / "atoms.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("smiles", "atoms", "rings", "split"))
        for i, text in enumerate(smiles):
            molecule = molecules.parse(text)
            rings = molecule.GetRingInfo().NumRings()
            split = "train" if i < 50 else "val" if i < 60 else "test"
            writer.writerow((text, molecule.GetNumAtoms(), rings, split))
    return file


@pytest.fixture(scope="session")
def trained(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Trains a config once per session, encoder and words; gives its run folder."""
    root = tmp_path_factory.mktemp("runs")
    done: dict[tuple[str, ...], Path] = {}

    def train(*setting: str) -> Path:
        if setting not in done:
            encoder, *words = setting
            name = "-".join(setting).replace("+", "-").lower()
            config = root / f"{name}.yaml"
            config.write_text(CONFIG.format(path=table, encoder=encoder))
            where = ["out_dir", str(root / "results"), "dataset.dir", str(root / "datasets")]
            assert cli.train(["--cfg", str(config), *where, *words]) == 0
            done[setting] = root / "results" / name / "0"
        return done[setting]

    return train


@pytest.fixture(scope="session")
def model(trained: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder, made by the command."""
    folder = tmp_path_factory.mktemp("models") / "atoms"
    assert cli.main(["export", str(trained("Atom+BPEARL")), "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def run(trained: Train, tmp_path: Path) -> Path:
    """A copy of a run's folder, which a test may damage."""
    shutil.copytree(trained("Atom"), tmp_path / "atom" / "0")
    return tmp_path / "atom" / "0"
