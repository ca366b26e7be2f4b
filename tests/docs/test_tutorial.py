"""The tutorial runs from its first cell to its last, and was committed with its outputs.

``python tests/docs/test_tutorial.py`` runs it and keeps the outputs.
"""

import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

REPOSITORY = Path(__file__).resolve().parents[2]
TUTORIAL = REPOSITORY / "docs" / "tutorial.ipynb"


def executed(folder: Path) -> nbformat.NotebookNode:
    """The notebook after all cells have run, with the package of this checkout."""
    command = folder / "graphgps-pearl"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m graphgps_pearl "$@"\n')
    command.chmod(0o755)
    notebook = nbformat.read(TUTORIAL, as_version=4)
    path, python_path = f"{folder}:{os.environ['PATH']}", str(REPOSITORY)
    environment = {**os.environ, "PATH": path, "PYTHONPATH": python_path, "TMPDIR": str(folder)}
    # Coalesced streams: of a progress bar the last state is kept.
    client = NotebookClient(notebook, timeout=1800, kernel_name="python3", coalesce_streams=True)
    return client.execute(env=environment, cwd=folder)


def test_the_tutorial_runs_and_predicts(tmp_path):
    last = [cell for cell in executed(tmp_path).cells if cell.cell_type == "code"][-1]
    assert "after five epochs" in last.outputs[0].text


def test_the_tutorial_is_committed_with_outputs():
    cells = nbformat.read(TUTORIAL, as_version=4).cells
    for cell in cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", cell.source
    shown = [
        output
        for cell in cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(shown) == 2  # the curve and the encodings


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        done = executed(Path(place))
    for cell in done.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output.text)  # for terminals
    done.metadata.language_info.pop("version")
    nbformat.write(done, TUTORIAL)
