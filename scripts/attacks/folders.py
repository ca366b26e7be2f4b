"""Hostile model folders. Whoever makes one also makes its checksums, so these are right in all of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from attacks.tally import Tally
from graphgps_pearl.inference.folder import read_model

Change = Callable[[Path], object]


def sign(folder: Path, **changes: Any) -> None:
    """Change the description (``REMOVED`` takes a key out), then make all checksums right."""
    file = folder / "model.json"
    content = json.loads(file.read_text())
    content = {key: value for key, value in {**content, **changes}.items() if value is not REMOVED}
    content.pop("sha256", None)
    for name in ("model.safetensors", "config.yaml", "README.md"):
        if (folder / name).is_file() and "files" in content:
            content["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    content["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps(content))


REMOVED = object()


def described(**changes: Any) -> Change:
    """Another value in ``model.json``."""
    return lambda folder: sign(folder, **changes)


def configured(key: str, value: object) -> Change:
    """Another value of a key such as ``gt.layers`` in ``config.yaml``."""

    def change(folder: Path) -> None:
        file = folder / "config.yaml"
        group, name = key.split(".")
        pattern = rf"(?ms)^({group}:\n.*?^  {name}: )[^\n]*"
        text, count = re.subn(pattern, rf"\g<1>{value}", file.read_text(), count=1)
        if not count:
            raise ValueError(f"no {key} in {file}")
        file.write_text(text)
        sign(folder)

    return change


def weighted(change: Callable[[dict[str, torch.Tensor]], Mapping[str, torch.Tensor]]) -> Change:
    """Other weights."""

    def write(folder: Path) -> None:
        save_file(dict(change(load_file(folder / "model.safetensors"))), folder / "model.safetensors")
        sign(folder)

    return write


def replaced(name: str, content: bytes) -> Change:
    """Another file, with its checksum."""

    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)
        sign(folder)

    return change


def overwritten(name: str, content: bytes) -> Change:
    """Another file, without its checksum."""
    return lambda folder: (folder / name).write_bytes(content)


def fifo(name: str) -> Change:
    """A pipe in the place of a file: reading it would wait for ever."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def _break_files(folder: Path) -> None:
    content = json.loads((folder / "model.json").read_text())
    content |= {"files": {"model.safetensors": 3, "config.yaml": None}}
    content.pop("sha256")
    content["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (folder / "model.json").write_text(json.dumps(content))


def without(name: str) -> Change:
    """A file is missing."""
    return lambda folder: (folder / name).unlink()


def _nine_aliases(number: int) -> bytes:
    """A line that means nine times the one before it."""
    return b"a%d: &a%d [%s]\n" % (number, number, b", ".join([b"*a%d" % (number - 1)] * 9))


def _first(state: dict[str, torch.Tensor]) -> str:
    return next(name for name, value in state.items() if value.is_floating_point() and value.dim() == 2)


CASES: dict[str, Change] = {
    **{
        f"{key} = {value}": configured(key, value)
        for key, value in (
            ("gt.layers", 10**9),
            ("gt.layers", 10**6),
            ("gt.layers", 0),
            ("gt.dim_hidden", 10**6),
            ("gt.n_heads", 10**9),
            ("gnn.layers_post_mp", 10**9),
            ("gnn.dim_inner", 10**6),
            ("posenc_BPEARL.num_layers", 10**6),
            ("posenc_BPEARL.hidden_dim", 10**6),
            ("posenc_BPEARL.dim_pe", 10**6),
            ("posenc_BPEARL.num_taps", 10**9),
            ("posenc_BPEARL.dim_pe", -1),
        )
    },
    **{
        f"{key} = {str(value)[:40]!r}": described(**{key: value})
        for key, value in (
            ("dim_out", 10**9),
            ("dim_out", True),
            ("dim_out", -1),
            ("dim_out", 1.5),
            ("dim_out", "1"),
            ("dim_out", None),
            ("dim_in", 10**9),
            ("dim_in", True),
            ("edge_dim", [3]),
            ("task_type", "clustering"),
            ("task_type", None),
            ("task_type", {}),
            ("target_mean", [1.0]),
            ("target_mean", 1.0),
            ("target_mean", ["1"]),
            ("target_std", [float("nan")]),
            ("target_units", "Å"),
            ("target_units", [None]),
            ("target_units", ["a", "b"]),
            ("target_names", [["a"]]),
            ("target_names", "abc"),
            ("target_names", {"a": 1}),
            ("class_names", 3),
            ("class_names", [1, 2]),
            ("class_names", ["a", "b", "c"]),
            ("metrics", [1]),
            ("metrics", {"test_mae": "x"}),
            ("metrics", {"test_mae": {}}),
            ("metrics", None),
            ("parameters", {"encoder": "many"}),
            ("versions", {"torch": ["\x1b[2J"]}),
            ("name", "\x1b]0;owned\x07"),
            ("name", "a\nb"),
            ("name", 7),
            ("dataset", "\x1b[31m"),
            ("target_names", ["\x1b[2J"]),
            ("target_units", ["\x9b31m"]),
            ("chosen", {"a": 1}),
            ("format_version", True),
            ("format_version", 99),
            ("format_version", "\x1b[2J"),
        )
    },
    "both statistics too long": described(target_mean=[0.0] * 9, target_std=[1.0] * 9),
    "a description without dim_out": described(dim_out=REMOVED),
    "a description that is a list": overwritten("model.json", b"[]"),
    "a description nested deeply": overwritten("model.json", b"[" * 100_000 + b"]" * 100_000),
    "no checksums": described(files=REMOVED),
    "checksums of another kind": _break_files,
    "integer weights": weighted(lambda state: {k: v.long() for k, v in state.items()}),
    "half precision": weighted(
        lambda state: {k: v.half() if v.is_floating_point() else v for k, v in state.items()}
    ),
    "a tensor too many": weighted(lambda state: {**state, "extra": torch.zeros(3)}),
    "a tensor too few": weighted(lambda state: {k: v for k, v in state.items() if k != _first(state)}),
    "another shape": weighted(lambda state: {**state, _first(state): torch.zeros(2, 2)}),
    "no weights": weighted(lambda state: {}),
    "weights that are text": replaced("model.safetensors", b"hello"),
    "weights with a huge header": replaced("model.safetensors", b"\xff\xff\xff\xff\xff\xff\xff\x7f{}"),
    "weights with a lying header": replaced(
        "model.safetensors",
        (56).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[99],"data_offsets":[0,4]}} ' + bytes(4),
    ),
    "a config that is a list": replaced("config.yaml", b"[1, 2]"),
    "a config with aliases": replaced(
        "config.yaml",
        b"a0: &a0 [x, x, x]\n" + b"".join(map(_nine_aliases, range(1, 12))),
    ),
    "a config that runs code": replaced("config.yaml", b"gt: !!python/object/apply:os.system [exit]"),
    "a config of bytes": replaced("config.yaml", bytes(range(256))),
    "an empty config": replaced("config.yaml", b""),
    **{f"a pipe as {name}": fifo(name) for name in ("config.yaml", "model.safetensors", "README.md")},
    **{f"without {name}": without(name) for name in ("config.yaml", "model.safetensors", "model.json")},
}


#: Changes after which the folder is still the same model.
HARMLESS = ("a pipe as README.md",)


def attack(model: Path, scratch: Path) -> Tally:
    """Load every hostile folder; each must be refused in one line."""
    tally = Tally("hostile model folders")
    for name, change in CASES.items():
        folder = scratch / "model"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(model, folder)
        change(folder)

        def use(name: str = name, folder: Path = folder) -> bool:
            read_model(folder)
            return name in HARMLESS

        tally.attempt(name, use)
    return tally
