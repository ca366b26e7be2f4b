"""Every fenced command of README.md and docs/ is run, or what it names is checked.

Run for real: ``predict``, ``describe``, ``encode``, ``export``, and all Python blocks. Parsed, with their
configs loaded: training, ``compare``, ``report``, ``search``. The set-up scripts, developers' scripts and the
upstream launcher: that the file exists and knows the flags. YAML blocks: that the keys exist.
"""

import importlib
import importlib.util
import io
import re
import shutil
from itertools import takewhile
from pathlib import Path

import pytest
import torch
import yaml
from helpers.fenced import REPOSITORY, Block, blocks, commands, pages
from torch_geometric.data import Batch
from torch_geometric.graphgym import register

from graphgps_pearl import cli, config
from graphgps_pearl.data import molecules, registry
from graphgps_pearl.experiments import compare
from graphgps_pearl.experiments.search import read_arguments
from graphgps_pearl.experiments.search_space import parse_space
from graphgps_pearl.runs.model_folder import SHIPPED, is_config

RUN = ("configs", "predict", "describe", "encode", "export")
#: Not ours to test.
OTHERS = {
    "pip",
    "tensorboard",
    "git",
    "ls",
    "cat",
    "export",
    "nvidia-smi",
    "pre-commit",
    "kill",
    "rm",
    "mkdir",
    "source",
}
MOLECULES = "CCO ethanol\nc1ccccc1 benzene\nCC(=O)Oc1ccccc1C(=O)O aspirin\n"


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Path:
    """A folder with what the documentation talks about: molecules, configs, a trained run."""
    (tmp_path / "molecules.smi").write_text(MOLECULES)
    (tmp_path / "molecules.csv").write_text("id,smiles\n1,CCO\n2,c1ccccc1\n")
    for name in ("configs", "docs"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    for name in ("results/quickstart/0", "results/wehi-logp-bpearl/0"):
        shutil.copytree(SHIPPED / "wehi-logp", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", blocks("bash", "sh"), ids=str)
def test_commands(block: Block, desk: Path, monkeypatch):
    found = commands(block.text, desk)
    assert found, "a block of commands without a command"
    for words in found:
        check(words, desk, monkeypatch)


def check(words: list[str], desk: Path, monkeypatch) -> None:
    program, *rest = words
    if program.startswith("./") or program in ("bash", "sbatch"):
        script = program if program.startswith("./") else next(w for w in rest if not w.startswith("-"))
        assert (REPOSITORY / script).is_file(), words
    elif program == "torchrun":
        check(
            ["python", *rest[next(i for i, w in enumerate(rest) if w.endswith(".py")) :]], desk, monkeypatch
        )
    elif program == "graphgps-pearl":
        check_ours(rest[0], rest[1:], desk, monkeypatch)
    elif program.startswith("python"):
        check_python(rest, desk, monkeypatch)
    else:
        assert program in OTHERS, f"say in {Path(__file__).name} how to check: {' '.join(words)}"


def check_python(words: list[str], desk: Path, monkeypatch) -> None:
    if words[0] == "main.py":
        words = ["-m", "graphgps_pearl", "train", *words[1:]]
    if words[:2] == ["-m", "graphgps_pearl"]:
        check_ours(words[2], words[3:], desk, monkeypatch)
    elif words[0] == "-c":
        compile(words[1], "-c", "exec")
    elif words[0] == "-m":
        assert importlib.util.find_spec(words[1]) is not None, words
    else:
        script = (REPOSITORY / words[0]).read_text()
        for flag in (word.partition("=")[0] for word in words[1:] if word.startswith("--")):
            assert f'"{flag}"' in script, f"{words[0]} has no {flag}"


def check_ours(command: str, words: list[str], desk: Path, monkeypatch) -> None:
    for word in words:
        if word.endswith((".yaml", ".yml")):
            assert (REPOSITORY / word).is_file(), word
    if command in RUN:
        monkeypatch.setattr("sys.stdin", io.StringIO(MOLECULES))
        if command == "describe" and is_config(Path(words[0])):
            words = [*words, "train.batch_size", "2"]
        assert cli.main([command, *words]) == 0, words
        return
    assert command in cli.COMMANDS, command
    module, _, function = cli.COMMANDS[command][0].partition(":")
    if command == "train":
        args = cli.train_parser().parse_intermixed_args(words)
        config.load(args.cfg, args.overrides)
        return
    if command == "search":
        args = read_arguments(words)
        parse_space(args.keys, config.load(args.config, args.overrides))
        return
    if command == "compare":
        names, _ = compare._before_keys(list(takewhile(lambda word: not word.startswith("--"), words)))
        for name in names if "--base" not in words else [words[words.index("--base") + 1]]:
            config.find(name)
    place = importlib.import_module(module)
    monkeypatch.setattr(place, "run_command", lambda work: 0)  # parsed, not run
    assert getattr(place, function)(words, prog=command) == 0


@pytest.fixture
def own_registry(monkeypatch) -> None:
    """What a block registers, with GraphGym or as a dataset, is gone afterwards."""
    monkeypatch.setattr(registry, "_SOURCES", dict(registry._SOURCES))
    for name, value in vars(register).items():
        if name.endswith("_dict") and isinstance(value, dict):
            monkeypatch.setattr(register, name, dict(value))


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python(block: Block, desk: Path, own_registry):
    graphs = [molecules.to_graph(molecules.parse(text), "ogb") for text in ("CCO", "c1ccccc1")]
    data = Batch.from_data_list(graphs)
    names = {
        "data": data,
        "edge_index": data.edge_index,
        "batch": data.batch,
        "q": torch.randn(data.num_nodes, 5),
    }
    exec(compile(block.text, str(block), "exec"), names)


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_keys(block: Block):
    def keys(tree, prefix=""):
        for word, value in tree.items():
            yield from keys(value, f"{prefix}{word}.") if isinstance(value, dict) else [f"{prefix}{word}"]

    for key in keys(yaml.safe_load(block.text)):
        assert key in config.SCHEMA or key == "base", key


def test_links_lead_to_files():
    for file in pages():
        for target in re.findall(r"\]\(([^)#\s]+)", file.read_text()):
            if "://" not in target:
                assert (file.parent / target).exists(), f"{file.name} links to {target}"
