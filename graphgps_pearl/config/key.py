"""One config key: its default, type, allowed values and help, and how written text becomes its value.

Values are read by what the key expects, not by what YAML guesses: ``1e-5`` is a float, ``no`` is text where
text is expected, ``010`` is no integer. So a file, the command line and Python give the same value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Real
from pathlib import PurePath
from typing import Any

Value = Any  # bool | int | float | str | None | list of one of the first four

MAX_TEXT = 1000
MAX_ITEMS = 10_000
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d{0,18})")
_NUMBER = re.compile(r"[-+]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][-+]?\d{1,4})?")
_TRUE, _FALSE, _NULL = {"true", "yes", "on"}, {"false", "no", "off"}, {"", "~", "null", "none"}
_PLURAL = {int: "integers", float: "numbers", str: "texts", bool: "true/false values"}

_EXAMPLES = {int: "1, 2", float: "0.5, 1", str: "a, b", bool: "true, false"}


class BadValueError(ValueError):
    """A value that its key does not allow; the message says what is allowed."""


@dataclass(frozen=True)
class Scalar:
    """One scalar as it was written; ``quoted`` text is never null or a truth value where text is expected."""

    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Key:
    """One knob of the config.

    Args:
        default: the value when a file does not set the key; as in upstream GraphGPS where it has the key.
        help: one line.
        type: ``bool``, ``int``, ``float``, ``str`` or a list of one of them such as ``list[int]``; taken from
            ``default`` where that is no list.
        choices: the texts allowed, spelled as they are stored; upper and lower case are not told apart.
        aliases: further texts, and the choice each stands for.
        min, max: inclusive bounds, of every item if the value is a list.
        above, below: exclusive bounds.
        length: fewest and most items of a list.
        optional: ``null`` is allowed.
        check: says what is wrong with a value of the right type, or None.
        used: False if graphgps_pearl does not use the key and accepts it so that GraphGPS's files load.
        always: an unused key whose wish is granted in every run, so that setting it is not reported.
    """

    default: Value
    help: str
    type: Any = None
    choices: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    length: tuple[int, int] = (0, MAX_ITEMS)
    optional: bool = False
    check: Callable[[Value], str | None] | None = field(default=None, repr=False)
    used: bool = True
    always: bool = False

    def __post_init__(self) -> None:
        if self.type is None:
            object.__setattr__(self, "type", type(self.default))

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return self.type not in (bool, int, float, str)

    @property
    def item(self) -> type:
        """The type of the value, or of the items of a list."""
        return self.type.__args__[0] if self.is_list else self.type

    @property
    def allowed(self) -> str:
        """What may be written, in words: ``an integer >= 1``."""
        limits = ((">=", self.min), (">", self.above), ("<=", self.max), ("<", self.below))
        bounds = " and ".join(f"{sign} {limit}" for sign, limit in limits if limit is not None)
        bounds = f" {bounds}" if bounds else ""
        if self.is_list:
            words = f"a list of {_PLURAL[self.item]}{bounds}, such as [{_EXAMPLES[self.item]}]"
        elif self.choices:
            words = "one of " + ", ".join(self.choices)
        else:
            names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
            words = names[self.type] + bounds
        return words + (" or null" if self.optional else "")

    def read(self, raw: object) -> Value:
        """The value for what was written: a :class:`Scalar`, a list of them, or a Python value."""
        raw = as_written(raw)
        if self.optional and isinstance(raw, Scalar) and not raw.quoted and raw.text.lower() in _NULL:
            return None
        if isinstance(raw, list) != self.is_list or not isinstance(raw, list | Scalar):
            raise BadValueError(f"expected {self.allowed}")
        if isinstance(raw, list):
            value: Value = [self._read_scalar(item) for item in raw]
            fewest, most = self.length
            if not fewest <= len(value) <= most:
                raise BadValueError(f"expected {self.allowed} with {fewest} to {most} items")
        else:
            value = self._read_scalar(raw)
        wrong = self.check(value) if self.check else None
        if wrong:
            raise BadValueError(wrong)
        return value

    def _read_scalar(self, raw: object) -> Value:
        if not isinstance(raw, Scalar):
            raise BadValueError(f"expected {self.allowed}")
        value = _READERS[self.item](raw)
        if value is None:
            raise BadValueError(f"expected {self.allowed}")
        if self.choices:
            return self._choose(value)
        if isinstance(value, int | float) and not self._within(value):
            raise BadValueError(f"expected {self.allowed}")
        return value

    def _within(self, value: float) -> bool:
        return (
            (self.min is None or value >= self.min)
            and (self.max is None or value <= self.max)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _choose(self, text: str) -> str:
        spelled = {choice.lower(): choice for choice in self.choices} | dict(self.aliases)
        if text.lower() in spelled:
            return spelled[text.lower()]
        near = get_close_matches(text.lower(), spelled, n=1)
        raise BadValueError(
            f"expected {self.allowed}" + (f"; did you mean {spelled[near[0]]}?" if near else "")
        )


Groups = Mapping[str, tuple[str, Mapping[str, Key]]]  # name of a group: what it is about, and its keys


def as_written(raw: object) -> object:
    """A Python value in the form a file would have it; what already is in that form stays as it is."""
    if isinstance(raw, str | PurePath):
        return Scalar(str(raw), quoted=True)
    if isinstance(raw, bool) or raw is None:
        return Scalar("null" if raw is None else str(raw))
    if isinstance(raw, int | float):
        return Scalar(int.__repr__(raw) if isinstance(raw, int) else float.__repr__(raw))
    if isinstance(raw, Real):  # numpy's: np.float32(0.1) is 0.1, not the 0.10000000149 it rounds to
        return Scalar(str(raw))
    if type(raw).__module__ == "numpy" and str(raw) in ("True", "False"):  # its bool is no number
        return Scalar(str(raw))
    if isinstance(raw, list | tuple | range):
        return [as_written(item) for item in raw]
    return raw


def _read_bool(raw: Scalar) -> bool | None:
    word = raw.text.lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _read_int(raw: Scalar) -> int | None:
    return int(raw.text) if _INTEGER.fullmatch(raw.text) else None


def _read_float(raw: Scalar) -> float | None:
    if not _NUMBER.fullmatch(raw.text):
        return None
    value = float(raw.text)
    return value if math.isfinite(value) else None


def _read_text(raw: Scalar) -> str | None:
    if not raw.quoted and raw.text.lower() in _TRUE | _FALSE | {"~", "null"}:
        raise BadValueError("expected text; put quotes around it if it is meant as such")
    if len(raw.text) > MAX_TEXT or not raw.text.isprintable():
        raise BadValueError(f"expected text on one line, of at most {MAX_TEXT} printable characters")
    return raw.text


_READERS: dict[type, Callable[[Scalar], Value]] = {
    bool: _read_bool,
    int: _read_int,
    float: _read_float,
    str: _read_text,
}
