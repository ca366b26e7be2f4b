"""Files are read without running what is in them, stay where they belong, and nothing is sent anywhere."""

import ast
import io
import os
import pickle
import shutil
import socket
from pathlib import Path

import pytest
import torch
from helpers import children
from helpers.small_runs import assert_same_run

from graphgps_pearl import config
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.files import write_verified

PACKAGE = Path(__file__).resolve().parents[2] / "graphgps_pearl"


class Payload:
    """Pickles to a call that leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> object:
        return os.system, (f"touch {self.trace}",)


def poison(file: Path, trace: Path, kind: str) -> None:
    """Put a payload in place of a file: as a bare pickle, as torch's archive, or beside real tensors.

    Whoever makes such a file makes its checksum too."""
    buffer = io.BytesIO()
    if kind == "pickle":
        pickle.dump(Payload(trace), buffer)
    elif kind == "archive":
        torch.save(Payload(trace), buffer)
    else:
        torch.save({**torch.load(file, weights_only=True), "position": Payload(trace)}, buffer)
    write_verified(file, buffer.getvalue())


@pytest.mark.parametrize("kind", ["pickle", "archive", "beside"])
def test_a_malicious_checkpoint_is_refused_and_does_not_run(runs, finished, tmp_path, caplog, kind):
    shutil.copytree(finished, runs.path())
    (runs.path() / "result.json").unlink()
    trace = tmp_path / "trace"
    poison(runs.path() / "last.ckpt", trace, kind)
    assert runs.train() == 0  # from the one before
    assert "last.ckpt cannot be read" in caplog.text
    assert not trace.exists()
    assert_same_run(runs.path(), finished)

    (runs.path() / "result.json").unlink()
    for name in ("last.ckpt", "previous.ckpt"):
        poison(runs.path() / name, trace, kind)
    assert runs.train() == 2
    assert not trace.exists()


def test_the_payload_would_run_if_it_were_let_in(tmp_path):
    """Else the tests above would show nothing."""
    trace = tmp_path / "trace"
    poison(tmp_path / "file", trace, "pickle")
    pickle.loads((tmp_path / "file").read_bytes())
    assert trace.exists()


def test_a_malicious_cache_is_made_again_and_does_not_run(runs, tmp_path, caplog):
    own = type(runs)(runs.folder, tmp_path / "datasets")
    assert own.train("optim.max_epoch", "1", tag="whole") == 0
    trace = tmp_path / "trace"
    caches = [p for p in own.dataset_dir.rglob("*") if p.is_file() and p.suffix == ".pt"]
    assert caches
    for kind in ("pickle", "archive"):
        for cache in caches:
            poison(cache, trace, kind)
        caplog.clear()
        assert own.train("optim.max_epoch", "1", tag=kind) == 0
        assert "preparing again" in caplog.text
        assert not trace.exists()
        assert_same_run(own.path(kind), own.path("whole"))


def calls(file: Path) -> list[tuple[str, ast.Call]]:
    """(dotted name, call) of every call in a file."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func), node) for node in nodes]


FORBIDDEN = {"eval", "exec", "compile", "pickle.load", "pickle.loads", "os.system", "os.popen", "yaml.load"}
FORBIDDEN |= {"marshal.loads", "shelve.open", "yaml.unsafe_load", "joblib.load", "np.load"}


def test_no_code_of_ours_can_run_what_it_reads():
    loads = 0
    for file in PACKAGE.rglob("*.py"):
        for name, call in calls(file):
            where = f"{file.relative_to(PACKAGE)}:{call.lineno}"
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            if name == "np.load":
                assert given.get("allow_pickle") == "False", where
            else:
                assert name not in FORBIDDEN, f"{where} calls {name}"
            if name == "torch.load":
                assert given.get("weights_only") == "True", where
                loads += 1
            assert given.get("shell") != "True", where
    assert loads >= 2


@pytest.mark.parametrize("tag", ["../up", "a/b", "/tmp/elsewhere", "..\\up", "a/../../b"])
def test_a_name_tag_stays_in_the_results(tag):
    with pytest.raises(ConfigError, match="name_tag"):
        config.parse("seed: 1", ["name_tag", tag])


@pytest.mark.parametrize("base", ["../other.yaml", "/etc/passwd", "sub/other.yaml", ".."])
def test_a_base_config_stays_in_its_folder(tmp_path, base):
    folder = tmp_path / "configs"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path / "other.yaml", folder / "sub" / "other.yaml"):
        place.write_text("seed: 3\n")
    (folder / "mine.yaml").write_text(f"base: {base}\n")
    with pytest.raises(ConfigError, match="base"):
        config.load(folder / "mine.yaml")


def no_network() -> None:
    """End the process with an exit code of its own if it looks for a network."""

    def refuse(*args: object, **kwargs: object) -> None:
        os._exit(77)

    class Fenced(socket.socket):
        def connect(self, address: object) -> None:
            if self.family != socket.AF_UNIX:
                refuse()
            super().connect(address)

    socket.socket = Fenced  # type: ignore[misc]
    socket.create_connection = refuse  # type: ignore[assignment]
    socket.getaddrinfo = refuse  # type: ignore[assignment]


def ask_the_network() -> None:
    """What a child without manners would do."""
    no_network()
    socket.create_connection(("example.org", 80))


def test_training_asks_no_network(runs, tmp_path):
    output = tmp_path / "output"
    own = type(runs)(runs.folder, tmp_path / "datasets")  # the data is prepared too
    child = children.start(own.arguments("optim.max_epoch", "1"), output, no_network)
    child.join(120)
    assert child.exitcode == 0, output.read_text()
    child = children.start(own.arguments(), output, ask_the_network)
    child.join(120)
    assert child.exitcode == 77


def test_tensorboard_is_told_to_listen_on_this_machine_only():
    for file in (PACKAGE / "cli.py", *(PACKAGE.parent / "run").glob("*.sh")):
        for line in file.read_text().splitlines():
            if "tensorboard --logdir" in line:
                assert "--host localhost" in line, f"{file.name}: {line.strip()}"
