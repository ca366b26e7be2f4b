"""One wrong bit in a public pickle: it is read, or ends in one line.

That what it says is right cannot be known here (downloads have checksums), so nothing counts as silent.
Files that are hostile on purpose are in tests/data.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from helpers.public_files import write_zinc

from attacks.flips import damage
from attacks.tally import Tally
from graphgps_pearl import config, data

_CONFIG = """
dataset:
  {format: PyG-ZINC, name: subset, task: graph, task_type: regression, check_totals: False,
   node_encoder: True, node_encoder_name: TypeDictNode, node_encoder_num_types: 28,
   edge_encoder: True, edge_encoder_name: TypeDictEdge, edge_encoder_num_types: 4}
model: {loss_fun: l1}
"""


def attack(count: int, seed: int, scratch: Path) -> Tally:
    """``count`` damaged pickles, each read as a dataset."""
    tally, rng = Tally("flips in public pickles (no traceback)"), random.Random(f"{seed} public")
    words = ["dataset.path", str(scratch), "dataset.dir", str(scratch / "datasets")]
    for number in range(count):
        shutil.rmtree(scratch, ignore_errors=True)
        write_zinc(scratch, {"train": 4, "val": 1, "test": 1})
        file = scratch / "train.pickle"
        file.write_bytes(damage(file.read_bytes(), rng))
        tally.attempt(f"number {number}, seed {seed}", lambda: bool(data.load(config.parse(_CONFIG, words))))
    return tally
