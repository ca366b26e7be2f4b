"""What several tests of inference need."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
ENCODERS = ("Atom+BPEARL", "Atom+RPEARL", "Atom+RWSE+BPEARL")


def rows_of(text: str) -> list[dict[str, str]]:
    """The rows of a CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def one_error(capsys: pytest.CaptureFixture[str]) -> str:
    """The only line of standard error."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    return lines[0]


def damage(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def spellings(smiles: list[str], seed: int = 0) -> list[str]:
    """The same molecules with their atoms in another order."""
    rng = np.random.default_rng(seed)
    written = []
    for text in smiles:
        molecule = Chem.MolFromSmiles(text)
        order = rng.permutation(molecule.GetNumAtoms()).tolist()
        written.append(Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False))
    return written
