"""The site builds without a warning, and has the API of the package."""

import subprocess
import sys

from helpers.fenced import REPOSITORY


def test_the_site_builds_without_warnings(tmp_path):
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(tmp_path)]
    done = subprocess.run(build, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    api = (tmp_path / "api.html").read_text()
    for name in ("pearl.BPEARL", "pearl.RPEARL", "inference.model.Model", "layers.GPSLayer", "load"):
        assert f"graphgps_pearl.{name}" in api, name
