"""The package as a user gets it: the wheel in an environment of its own, from an empty folder."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from graphgps_pearl.extras import TRAIN

REPOSITORY = Path(__file__).resolve().parents[1]
SMALL = "optim.max_epoch 1 dataset.subset 100 gt.layers 1"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    options = ["--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*pip, "wheel", *options, str(REPOSITORY)], check=True)
    (file,) = folder.glob("graphgps_pearl-*.whl")
    return file


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """The ``bin`` of a new environment with the wheel; torch and the like are those of this interpreter."""
    folder = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    paths = {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", vars=paths))
    (own / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "--ignore-installed", str(wheel)], check=True)
    return folder / "bin"


@pytest.fixture
def run(environment, tmp_path):
    """Run a command line in an empty folder; gives what it printed."""

    def call(line: str, code: int = 0, text: str | None = None) -> str:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            line.split(),
            cwd=tmp_path,
            input=text,
            env={**variables, "PATH": f"{environment}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return call


def test_the_wheel_has_configs_models_and_types(wheel):
    archive = zipfile.ZipFile(wheel)
    names = set(archive.namelist())
    assert {f"graphgps_pearl/configs/{f.name}" for f in (REPOSITORY / "configs").iterdir()} <= names
    assert "graphgps_pearl/py.typed" in names
    assert "graphgps_pearl/models/wehi-logp/model.safetensors" in names
    assert {name.partition("/")[0] for name in names} == {"graphgps_pearl", "graphgps_pearl-0.1.0.dist-info"}


def test_an_editable_install_leads_to_the_checkout(tmp_path):
    """What ``run/_environment.sh`` installs, without a package that it does not have."""
    build = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=REPOSITORY, check=True)
    (file,) = tmp_path.glob("*.whl")
    assert zipfile.ZipFile(file).read("_graphgps_pearl.pth").decode().strip() == str(REPOSITORY)


def test_a_package_index_gets_no_link_that_leads_nowhere(wheel):
    metadata = zipfile.ZipFile(wheel).read("graphgps_pearl-0.1.0.dist-info/METADATA").decode()
    assert "# graphgps_pearl" in metadata and "](https://" in metadata
    for target in metadata.split("](")[1:]:
        assert target.startswith("https://"), target[:80]


def test_configs_from_an_empty_folder(run, tmp_path):
    assert "zinc-bpearl " in run("graphgps-pearl configs")
    run("graphgps-pearl configs zinc-bpearl --copy")
    assert "PyG-ZINC" in (tmp_path / "zinc-bpearl.yaml").read_text()
    assert "did you mean zinc-bpearl?" in run("graphgps-pearl train --cfg zinc-bpear", code=2)
    assert "graphgps-pearl COMMAND" in run("graphgps-pearl --help")


def test_the_modules_need_torch_and_pyg_alone(environment, run, tmp_path):
    """Without the packages of [train] the modules work and the commands name the extra."""
    absent = ", ".join(f"{name!r}" for name in TRAIN - {"numpy", "tqdm"})  # which PyG brings
    (tmp_path / "light.py").write_text(f"""
import sys
sys.modules.update(dict.fromkeys([{absent}]))
import graphgps_pearl
from graphgps_pearl.cli import main
from graphgps_pearl.pearl import BPEARL
import torch
ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
print(tuple(BPEARL(dim_pe=4, hidden_dim=8, num_layers=2)(ring).shape))
try:
    graphgps_pearl.load("wehi-logp")
except ImportError as error:
    print(error)
for words in (["train", "--cfg", "zinc-bpearl"], ["compare", "a"], ["predict", "a", "-"], ["configs"]):
    print(words[0], main(words))
""")
    said = run("python light.py")
    assert "(3, 4)" in said
    assert said.count("pip install 'graphgps_pearl[train]'") == 5
    for command in ("train", "compare", "predict", "configs"):
        assert f"{command} 2" in said


def test_extras_name_every_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    names = {line.split(">")[0] for line in project["optional-dependencies"]["train"]}
    always_there = {"torch", "filelock", "xxhash"}  # torch and PyG need the last two themselves
    other = {"yaml": "pyyaml", "sklearn": "scikit-learn"}
    assert names == always_there | {other.get(name, name) for name in TRAIN}


@pytest.mark.slow
def test_the_commands_of_the_readme(run, tmp_path):
    run(f"graphgps-pearl train --cfg quickstart {SMALL}")
    assert (tmp_path / "results/quickstart/0/config.yaml").is_file()
    said = run(f"graphgps-pearl compare --base quickstart --encoders none BPEARL {SMALL}")
    assert "BPEARL" in said and (tmp_path / "results/report.html").is_file()
    assert "pred_penalised_logP" in run("graphgps-pearl predict wehi-logp -", text="CCO\n")
    assert "448,343" in run("graphgps-pearl describe zinc-bpearl --no-timing")
    missing = run("graphgps-pearl train --cfg zinc-bpearl dataset.source path dataset.path nowhere", code=2)
    assert "nowhere" in missing and "train.pickle" in missing
