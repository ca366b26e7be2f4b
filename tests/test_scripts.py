"""The scripts in ``run/``: they parse, and what they name exists."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((REPOSITORY / "run").glob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse_and_name_configs_that_exist(script):
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text()
    for name in re.findall(r"configs/[a-z][\w.-]+\.yaml", text):
        assert (REPOSITORY / name).is_file(), name


def test_experiments_name_configs_of_every_dataset():
    encoders = re.search(r"for encoder in (.*);", (REPOSITORY / "run" / "experiments.sh").read_text())
    assert encoders is not None
    for dataset in ("zinc", "peptides", "peptides-func", "drugood"):
        for encoder in encoders[1].split():
            assert (REPOSITORY / "configs" / f"{dataset}-{encoder}.yaml").is_file()


def test_ci_runs_the_readmes_test_command():
    readme = (REPOSITORY / "README.md").read_text()
    assert "./run/test.sh" in readme
    assert "exec ./run/test.sh" in (REPOSITORY / ".ci" / "run").read_text()
