"""YAML text to a tree of what was written, each key with its line; and a config to YAML text.

Only mappings, lists and scalars: no tags, no anchors, no aliases, no second document, no duplicate key, and
bounded in size and depth. Nothing is constructed, so no code in a file can run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from graphgps_pearl.config.key import Scalar
from graphgps_pearl.errors import ConfigError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 8
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Entry:
    """The value of a key and the line of the key, counted from 1."""

    value: Node
    line: int


Mapping = dict[str, Entry]
Node = Scalar | list["Node"] | Mapping


def parse_yaml(text: str, name: str) -> Node:
    """The tree of a document; errors begin with ``name`` and the line."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{name}: is larger than {MAX_BYTES // 1024} kB, which no config is")
    try:
        return _Reader(yaml.parse(text, Loader=_Loader), name).document()
    except UnicodeEncodeError:  # half a character, as the command line may hold one
        raise ConfigError(f"{name}: has characters that are not text") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: is not valid YAML: {_one_line(error)}") from None


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    position = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return " ".join(str(problem).split()) + position


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


class _Reader:
    """Recursive descent over YAML's events."""

    def __init__(self, events: Iterator[yaml.Event], name: str) -> None:
        self.events = events
        self.name = name

    def fail(self, event: yaml.Event, problem: str) -> ConfigError:
        return ConfigError(f"{self.name}:{_line(event)}: {problem}")

    def document(self) -> Node:
        root: Node = Scalar("")
        seen = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                seen += 1
                if seen > 1:
                    raise self.fail(event, "has a second YAML document; expected one")
            elif isinstance(event, yaml.NodeEvent):
                root = self.node(event, 0)
        return root

    def node(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise self.fail(event, "YAML anchors and aliases (&, *) are not allowed; write the values out")
        if getattr(event, "tag", None):
            raise self.fail(event, f"YAML tags such as {str(event.tag)[:60]!r} are not allowed")  # type: ignore[attr-defined]
        if depth > MAX_DEPTH:
            raise self.fail(event, f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, quoted=event.style is not None and event.style != "")
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.node(item, depth + 1) for item in self.until(yaml.SequenceEndEvent)]
        return self.mapping(depth)

    def mapping(self, depth: int) -> Mapping:
        found: Mapping = {}
        for event in self.until(yaml.MappingEndEvent):
            key = self.node(event, depth + 1)
            if not isinstance(key, Scalar):
                raise self.fail(event, "has a list or group where a key is expected")
            if key.text in found:
                raise self.fail(
                    event, f"{key.text!r} is set a second time (first on line {found[key.text].line})"
                )
            found[key.text] = Entry(self.node(next(self.events), depth + 1), _line(event))
        return found

    def until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield event


def to_yaml(tree: dict[str, Any]) -> str:
    """Nested dicts of scalars and lists as YAML that :func:`parse_yaml` reads."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=10_000)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # C if it is there
    """Lists on one line, everything else as YAML's safe subset has it."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values out: aliases are refused on loading."""
        return True


_Dumper.add_representer(
    list, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
