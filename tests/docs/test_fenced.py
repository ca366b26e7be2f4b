"""The reader of the documentation's commands: what the shell would run, and mistakes that must not pass."""

import importlib.util
from pathlib import Path

import pytest
from helpers.fenced import commands


def test_loops_quotes_continuations_and_comments(tmp_path):
    text = """
for encoder in none bpearl; do python main.py --cfg configs/zinc-$encoder.yaml; done  # both
OMP_NUM_THREADS=1 python -m graphgps_pearl predict wehi-logp \\
    "my molecules.smi"
echo CCO | python -m x -
./run/quickstart.sh --fast
.venv/bin/tensorboard --logdir results
"""
    assert commands(text, tmp_path) == [
        ["python", "main.py", "--cfg", "configs/zinc-none.yaml"],
        ["python", "main.py", "--cfg", "configs/zinc-bpearl.yaml"],
        ["python", "-m", "graphgps_pearl", "predict", "wehi-logp", "my molecules.smi"],
        ["python", "-m", "x", "-"],
        ["./run/quickstart.sh", "--fast"],
        ["tensorboard", "--logdir", "results"],
    ]


@pytest.mark.parametrize(
    "line",
    (
        "python main.py --cfg configs/none-such.yaml",
        "python main.py --cfg configs/quickstart.yaml gt.layer 3",
        "python main.py --config configs/quickstart.yaml",
        "python -m graphgps_pearl predicts wehi-logp",
        "python -m graphgps_pearl report results --no-such-flag",
        "python -m graphgps_pearl describe wehi-logp --no-such-flag",
        "graphgps-pearl train --cfg no-such-name",
        "graphgps-pearl compare --base no-such-name --encoders none",
        "graphgps-pearl configs no-such-name",
        "python -c 'import'",
        "python scripts/no_such_script.py",
        "./run/no-such-script.sh",
        "no-such-program",
    ),
)
def test_wrong_commands_do_not_pass(line, tmp_path, monkeypatch):
    file = Path(__file__).with_name("test_commands.py")
    spec = importlib.util.spec_from_file_location("documented_commands", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (words,) = commands(line, tmp_path)
    with pytest.raises((AssertionError, SystemExit, OSError, SyntaxError, module.config.ConfigError)):
        module.check(words, tmp_path, monkeypatch)
