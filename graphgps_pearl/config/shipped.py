"""The configs that come with the package, found by name.

In a checkout they are the files of the top-level folder ``configs/``; in an installed package a copy of it.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from graphgps_pearl.errors import ConfigError

SUFFIXES = (".yaml", ".yml")
_PACKAGE = Path(__file__).parents[1]


def folder() -> Path:
    """The folder of the shipped configs."""
    installed = _PACKAGE / "configs"
    return installed if installed.is_dir() else _PACKAGE.with_name("configs")


def names() -> list[str]:
    """Names of the shipped configs, such as ``zinc-bpearl``."""
    return sorted(file.stem for file in folder().glob("*.yaml"))


def find(word: str | Path) -> Path:
    """The config file that a word names: a file, or else a shipped config.

    ``zinc-bpearl`` is a file of that name, the file ``zinc-bpearl.yaml``, or the shipped config, in this
    order. Anything with a folder or a suffix is a file, whether it exists or not.
    """
    path = Path(word)
    if path.is_file() or path.suffix in SUFFIXES or path.name != str(word) or not path.name:
        return path
    local = Path(f"{word}.yaml")
    return local if local.is_file() else folder() / f"{known(path.name)}.yaml"


def shown(path: str | Path) -> str:
    """How messages call a config file: a shipped one by its name, any other by its path."""
    path = Path(path)
    return path.stem if path.is_absolute() and path.parent == folder() else str(path)


def known(name: str) -> str:
    """``name``, if a shipped config has it; else an error that suggests the nearest."""
    if name in names():
        return name
    near = get_close_matches(name, names(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "'graphgps-pearl configs' lists those that are"
    safe = name if name.isprintable() else repr(name)
    raise ConfigError(f"{safe[:100]}: is neither a file nor the name of a shipped config; {hint}")


def summary(name: str) -> str:
    """What a shipped config is, in a sentence: the first one of its leading comment."""
    first, dot, _ = " ".join(_comment(_text(name))).partition(". ")
    return first + dot.rstrip()


def whole(name: str) -> str:
    """The text of a shipped config as one file: what its ``base`` sets is written out."""
    text = _text(name)
    tree = yaml.safe_load(text)
    if "base" not in tree:
        return text
    lines = [*_comment(text), f"(With what {tree['base']} sets written out.)"]
    return "".join(f"# {line}\n" for line in lines) + yaml.safe_dump(_tree(tree), sort_keys=False, width=100)


def _text(name: str) -> str:
    return (folder() / f"{name}.yaml").read_text(encoding="utf-8")


def _comment(text: str) -> list[str]:
    """The comment lines that a file begins with."""
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return [line[1:].strip() for line in lines[:end]]


def _tree(tree: dict[str, Any]) -> dict[str, Any]:
    """A config with its ``base`` written out."""
    base = tree.pop("base", None)
    return _over(_tree(yaml.safe_load((folder() / base).read_text(encoding="utf-8"))), tree) if base else tree


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Two trees as one, the second winning."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
