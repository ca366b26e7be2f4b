"""Files around the code agree with it: versions, Pythons, tools."""

import re
import tomllib
from pathlib import Path

import yaml

from graphgps_pearl import __version__

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def read_yaml(name: str) -> dict:
    return yaml.safe_load((REPOSITORY / name).read_text())


def test_the_citation_names_this_version_and_the_paper_of_the_readme():
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == __version__
    paper = citation["preferred-citation"]
    readme = (REPOSITORY / "README.md").read_text()
    assert paper["title"] in readme and paper["url"] in readme
    for author in paper["authors"]:
        assert f"{author['family-names']}, {author['given-names']}" in readme


def test_ci_runs_every_python_that_is_promised_and_the_lowest_torch():
    promised = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.", c)}
    jobs = read_yaml(".github/workflows/tests.yml")["jobs"]
    assert set(jobs["fast"]["strategy"]["matrix"]["python"]) == promised == {"3.11", "3.12", "3.13"}
    (lowest,) = re.findall(r"torch>=([0-9.]+)", PROJECT["dependencies"][0])
    assert any(f"torch=={lowest}" in step.get("run", "") for step in jobs["lowest-torch"]["steps"])


def test_pre_commit_has_the_checks_of_the_test_script():
    script = (REPOSITORY / "run" / "test.sh").read_text()
    for hook in read_yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]:
        assert hook["entry"].removeprefix(".venv/bin/") in script


def test_the_top_level_has_only_what_convention_puts_there():
    allowed = {
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "main.py",
        "pyproject.toml",
    }
    files = {f.name for f in REPOSITORY.iterdir() if f.is_file() and not f.name.startswith(".")}
    assert files <= allowed | {"main.py", "pyproject.toml", "requirements.txt"}
