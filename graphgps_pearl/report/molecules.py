"""The same few molecules for every run of a comparison, their atoms coloured by the run's own encoding.

Encodings see the bare graph, so any trained encoder can be shown on any molecule, whatever features its
network was trained with.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphgps_pearl.runs.results import Run

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

MOLECULES = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "ibuprofen": "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "nicotine": "CN1CCCC1c1cccnc1",
    "testosterone": "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
    "penicillin V": "CC1(C)SC2C(NC(=O)COc3ccccc3)C(=O)N2C1C(=O)O",
    "celecoxib": "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "quinine": "COc1ccc2nccc(C(O)C3CC4CCN3CC4C=C)c2c1",
}
#: Formats of ``dataset.format`` whose graphs are molecules.
MOLECULAR = ("PyG-ZINC", "OGB", "DrugOOD", "csv", "embedded")


def drawings(runs: Mapping[str, Sequence[Run]]) -> dict[str, bytes]:
    """A PNG for every encoding of the first finished run of each config, by a name to show.

    They are an extra: what cannot be drawn is said in one line.
    """
    pictures: dict[str, bytes] = {}
    for name, some in runs.items():
        run = next((r for r in some if r.result is not None and _holds_a_model(r.path)), None)
        if run is None or run.encoder == "none" or run.config["dataset"]["format"] not in MOLECULAR:
            continue
        try:
            pictures |= {f"{name}: {encoder}": png for encoder, png in draw(run.path).items()}
        except Exception as error:
            log.warning("%s: no molecules in the report (%s: %s)", run.path, type(error).__name__, error)
    return pictures


def _holds_a_model(path: Path) -> bool:
    """Whether a model can be read from a run folder without its data."""
    return all((path / file).is_file() for file in ("best.ckpt", "data.json"))


def within_molecules(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """One number in [-1, 1] per atom, from encodings [n_i, dim_pe] of several molecules.

    Each encoding is centred within its molecule first, since differences between molecules, such as their
    size, would hide how atoms differ. Then the first principal component of all atoms, each molecule scaled
    to its largest value.
    """
    centred = [part - part.mean(axis=0) for part in parts]
    direction = np.linalg.svd(np.concatenate(centred), full_matrices=False)[2][0]
    # The sign of a principal component is arbitrary: fix it, so that a picture can be made again.
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    values = [part @ direction for part in centred]
    return [value / (np.abs(value).max() or 1.0) for value in values]


def draw(path: Path) -> dict[str, bytes]:
    """A PNG for every encoding of a trained run, by the encoder's name."""
    from graphgps_pearl import encoders
    from graphgps_pearl.data import molecules
    from graphgps_pearl.inference.draw import draw_grid
    from graphgps_pearl.inference.loading import load
    from graphgps_pearl.report.pictures import encodings

    model = load(path)
    graphs = [molecules.to_graph(molecules.parse(text), "ogb") for text in MOLECULES.values()]
    for transform in encoders.required_transforms(model.cfg):
        graphs = [transform(graph) for graph in graphs]
    return {
        name: draw_grid(
            list(MOLECULES.values()), within_molecules(encodings(encoder, graphs)), list(MOLECULES)
        )
        for name, encoder in model.positional_encoders().items()
    }
