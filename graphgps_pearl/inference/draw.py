"""Molecules with their atoms coloured by an encoding, drawn by RDKit.

One number per atom: a column of the encoding, or its first principal component over all atoms drawn, which is
the direction in which they differ most. Blue is low, white the middle, red high, one scale for all.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphgps_pearl.data import molecules
from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.files import write_atomically
from graphgps_pearl.inference.model import Encodings

_MOST = 12
_COLUMNS = 4
_PANEL = (340, 300)
_LEGEND = 40  # characters
_OPTIONS = {
    "drawMolsSameScale": False,
    "fixedBondLength": 34.0,  # at most, so that small molecules do not fill their panels
    "bondLineWidth": 2,
    "fillHighlights": True,
    "highlightRadius": 0.4,
    "padding": 0.06,
    "legendFontSize": 14,
}
_LOW, _MIDDLE, _HIGH = (0.23, 0.45, 0.85), (0.97, 0.97, 0.97), (0.87, 0.28, 0.22)


def draw_encodings(
    encodings: Encodings, path: Path, name: str | None = None, component: int | None = None
) -> None:
    """Draw the first molecules that could be read.

    Args:
        encodings: of all molecules.
        path: the PNG to write.
        name: which encoding; the only one if left out.
        component: which of its columns; the first principal component if left out.
    """
    parts = _chosen(encodings, name)
    rows = [i for i in range(len(parts)) if len(parts[i])][:_MOST]
    if not rows:
        raise DataError("none of the molecules could be read, so there is nothing to draw")
    values = project([parts[i] for i in rows], component)
    picture = draw_grid([encodings.smiles[i].strip() for i in rows], values)
    try:
        write_atomically(path, picture)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from error


def _chosen(encodings: Encodings, name: str | None) -> list[NDArray[np.float32]]:
    names = ", ".join(encodings.arrays)
    if name is None and len(encodings.arrays) > 1:
        raise UserError(f"--encoding: there are several, name the one to draw: {names}")
    if name is not None and name not in encodings.arrays:
        raise UserError(f"--encoding: {name!r} is not in the model; it has {names}")
    return encodings.arrays[name or names]


def project(parts: list[NDArray[np.float32]], component: int | None = None) -> list[NDArray[np.float64]]:
    """One number in [-1, 1] per atom, of molecules whose encodings are [n_i, dim_pe]."""
    joined = np.concatenate(parts).astype(np.float64)
    if component is not None and component >= joined.shape[1]:
        raise UserError(f"--component: {component} is not one of the columns 0 to {joined.shape[1] - 1}")
    if component is None:
        centred = joined - joined.mean(axis=0)
        direction = np.linalg.svd(centred, full_matrices=False)[2][0]
        # The sign of a principal component is arbitrary: fix it, so that a picture can be made again.
        values = centred @ (direction * np.sign(direction[np.abs(direction).argmax()]))
    else:
        values = joined[:, component] - joined[:, component].mean()
    # A few extreme atoms must not leave the others white.
    most = np.quantile(np.abs(values), 0.95) or 1.0
    values = np.clip(values / most, -1, 1)
    return np.split(values, np.cumsum([len(part) for part in parts])[:-1])


def colour(value: float) -> tuple[float, float, float]:
    """-1 is blue, 0 white, 1 red.

    >>> colour(0.0)
    (0.97, 0.97, 0.97)
    """
    end = _HIGH if value > 0 else _LOW
    red, green, blue = (m + abs(value) * (e - m) for m, e in zip(_MIDDLE, end, strict=True))
    return red, green, blue


def draw_grid(
    smiles: list[str], values: list[NDArray[np.float64]], legends: list[str] | None = None
) -> bytes:
    """A PNG with one panel per molecule, its atoms coloured by values in [-1, 1]; legends are the SMILES if
    left out."""
    from rdkit.Chem import rdDepictor
    from rdkit.Chem.Draw import rdMolDraw2D

    drawn = [molecules.parse(text) for text in smiles]
    for molecule in drawn:
        rdDepictor.Compute2DCoords(molecule)
    columns = min(_COLUMNS, len(drawn))
    lines = -(-len(drawn) // columns)
    canvas = rdMolDraw2D.MolDraw2DCairo(columns * _PANEL[0], lines * _PANEL[1], *_PANEL)
    options = canvas.drawOptions()
    options.useBWAtomPalette()
    for setting, value in _OPTIONS.items():
        setattr(options, setting, value)
    atoms = [list(range(molecule.GetNumAtoms())) for molecule in drawn]
    colours = [{i: colour(float(v)) for i, v in enumerate(part)} for part in values]
    canvas.DrawMolecules(
        drawn,
        legends=[text if len(text) <= _LEGEND else text[: _LEGEND - 3] + "..." for text in legends or smiles],
        highlightAtoms=atoms,
        highlightAtomColors=colours,
        highlightBonds=[[]] * len(drawn),
    )
    canvas.FinishDrawing()
    return canvas.GetDrawingText()
