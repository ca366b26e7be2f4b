"""Configs are read and refused without torch or PyG, and at once."""

import subprocess
import sys
import time
from pathlib import Path

from helpers.upstream_configs import ZINC_RWSE

from graphgps_pearl import config

PROGRAM = """
import sys
from graphgps_pearl import config
from graphgps_pearl.config.__main__ import document
cfg = config.load(sys.argv[1])
config.dump(cfg)
document()
try:
    config.load(sys.argv[1], ["gt.n_heads", "5"])
except config.ConfigError:
    pass
heavy = {"torch", "torch_geometric", "lightning", "numpy", "rdkit", "scipy", "pandas"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


def test_no_torch(tmp_path: Path) -> None:
    path = tmp_path / "zinc.yaml"
    path.write_text(ZINC_RWSE)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_loading_is_quick() -> None:
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        config.parse(config.dump(config.parse(ZINC_RWSE)))
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5  # some 40 ms on an idle core; the bound is for crowded machines
