"""TensorBoard as a reader sees it: served here, rendered by a headless Chromium.

To make the documentation's picture again, of the runs in ``results``:
``PYTHONPATH=tests python -m helpers.browser results docs/tensorboard.png
"#scalars&tagFilter=^(train|val|test)%2Fmae&_smoothingWeight=0" 1480,600``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",  # the page's own milliseconds, not ours
)


def chromium() -> str:
    """The browser of the system's packages; a test that needs one skips where there is none."""
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found is None:
        pytest.skip("no Chromium here (such as apt-get install chromium)")
    return found


def serve(logdir: Path, runs: int) -> str:
    """The address of a TensorBoard that knows so many runs; it ends with this process."""
    from tensorboard import program

    board = program.TensorBoard()
    board.configure(
        argv=[None, "--logdir", str(logdir), "--host", "localhost", "--port", "0", "--load_fast=false"]
    )
    url = board.launch()
    deadline = time.monotonic() + 60
    while len(json.load(urlopen(f"{url}data/plugin/timeseries/tags"))["scalars"]["runTagInfo"]) < runs:
        assert time.monotonic() < deadline, "TensorBoard does not find the runs"
        time.sleep(0.2)
    return url


def dom(url: str) -> str:
    """The page's document after its scripts have run.

    Of TensorBoard's pages this shows the time series in full; the others keep their content in shadow trees,
    which a dump leaves out. Cards are rendered where they can be seen, so the window is a tall one.
    """
    return _visit(url, "--dump-dom", "--window-size=1600,6000")


def screenshot(url: str, file: Path, size: str = "1480,560") -> None:
    """A PNG of the page."""
    _visit(url, f"--screenshot={file}", f"--window-size={size}")


def _visit(url: str, *flags: str) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [chromium(), *_FLAGS, f"--user-data-dir={profile}", *flags, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


if __name__ == "__main__":
    folder, file, page = sys.argv[1:4]
    screenshot(serve(Path(folder), runs=1) + page, Path(file).resolve(), *sys.argv[4:5])
