"""Golden losses: 20 training steps of every family of shipped configs, as numbers on disk.

A refactoring is right where these do not move. Each run trains its molecules in one batch, so that an epoch
is a step; dropout is off, because the order in which random numbers are drawn is not part of the mathematics.
Compiled kernels are off: they depend on the machine, and have another order of the same sums.

    WRITE_GOLDEN=1 ./run/test.sh tests/golden     # writes the files; the commit that changes them says why
"""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path

import pytest
from golden.molecules import write_datasets

from graphgps_pearl.cli import train
from graphgps_pearl.switches import use_kernels

REPOSITORY = Path(__file__).resolve().parents[2]

GOLDEN = Path(__file__).resolve().parent
CONFIGS = (
    "zinc-none",
    "zinc-rwse",
    "zinc-bpearl",
    "zinc-bpearl-paper",
    "zinc-rpearl",
    "zinc-rpearl-paper",
    "peptides-bpearl",
    "drugood-bpearl",
    "drugood-bpearl-paper",
)
STEPS = 20
PRECISIONS = ("64", "32")
# Float64 is compared in all steps, float32 in the first ones. Another CPU adds the same products in another
# order, and Adam's first updates turn a gradient that is all rounding into whole steps: the float32 losses of
# two CPUs agree to 4e-7 in the first two steps, the second of which follows an update of next to nothing, to
# 2e-4 in the third and to 7e-3 in the fifth. MKL_CBWR=COMPATIBLE shows much the same on one CPU.
FLOAT32 = {"loss": (1e-5, 1e-5, 5e-3), "grad_norm": (5e-3, 5e-3)}
SETTINGS = {
    "dataset.check_totals": False,
    "train.batch_size": 12,
    "train.eval_period": STEPS,
    "optim.max_epoch": STEPS,
    "optim.num_warmup_epochs": 2,
    "gt.dropout": 0.0,
    "gt.attn_dropout": 0.0,
    "posenc_RPEARL.num_samples": 10,
    "num_threads": 1,
    "accelerator": "cpu",
}


def steps_of(name: str, precision: str, datasets: Path, out_dir: Path) -> dict[str, list[float] | float]:
    """Loss and gradient norm of every step, and the validation metric after the last."""
    settings = SETTINGS | {"train.precision": precision, "dataset.dir": datasets, "out_dir": out_dir}
    words = [str(word) for key_value in settings.items() for word in key_value]
    with use_kernels(True, native=False):
        assert train(["--cfg", str(REPOSITORY / "configs" / f"{name}.yaml"), *words]) == 0
    run = out_dir / name / "0"
    with (run / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    result = json.loads((run / "result.json").read_text())
    return {
        "loss": [float(row["train_loss"]) for row in rows],
        "grad_norm": [float(row["grad_norm"]) for row in rows],
        result["metric"]: float(rows[-1][result["metric"]]),
    }


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("datasets")
    write_datasets(folder)
    return folder


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", CONFIGS)
def test_losses_are_the_golden_ones(name: str, precision: str, datasets: Path, tmp_path: Path) -> None:
    file = GOLDEN / f"{name}.json"
    every = json.loads(file.read_text()) if file.exists() else {}
    found = steps_of(name, precision, datasets, tmp_path)
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(json.dumps(every | {precision: found}, indent=1) + "\n")
        return
    golden = every[precision]
    assert found.keys() == golden.keys()
    for losses in (found["loss"], golden["loss"]):
        assert len(losses) == STEPS and all(math.isfinite(loss) for loss in losses) and losses[-1] < losses[0]
    for key, values in golden.items():
        if precision == "64":
            assert found[key] == pytest.approx(values, rel=1e-9), key
        for step, tolerance in enumerate(FLOAT32.get(key, ())):
            assert found[key][step] == pytest.approx(values[step], rel=tolerance), f"{key} of step {step + 1}"
