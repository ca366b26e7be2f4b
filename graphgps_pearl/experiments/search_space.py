"""What a search varies: ``KEY=A,B,C`` (one of these) or ``KEY=LOW:HIGH[:STEP|:log]`` (a range).

Keys, types and bounds are those of the config's schema; nothing heavy is imported to check them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphgps_pearl import config
from graphgps_pearl.errors import ConfigError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from yacs.config import CfgNode

#: What tells runs apart, or what they are compared by, is not what makes one better.
NOT_SEARCHED = (
    *("seed", "out_dir", "name_tag", "dataset.split_index"),
    *("metric_best", "metric_agg", "dataset.select_split"),
)


@dataclass(frozen=True)
class Dimension:
    """One key and its values: ``choices``, or the range from ``low`` to ``high``, both ends included."""

    key: str
    text: str  # as it was written
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False

    def distribution(self) -> BaseDistribution:
        """As Optuna has it."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if config.SCHEMA[self.key].type is int:
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)


def parse_space(texts: Sequence[str], cfg: CfgNode) -> tuple[Dimension, ...]:
    """The dimensions that ``texts`` describe, for a search that starts from ``cfg``."""
    space = tuple(parse_dimension(word) for word in texts)
    keys = [dimension.key for dimension in space]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigError(f"--keys {key}: is given twice; give all its values at once")
        encoding = key.partition(".")[0].removeprefix("posenc_")
        unnamed = key.startswith("posenc_") and encoding not in config.encodings(cfg)
        if unnamed and "dataset.node_encoder_name" not in keys:
            raise ConfigError(
                f"--keys {key}: the config does not use {encoding}; name it in dataset.node_encoder_name, "
                f"which is {cfg.dataset.node_encoder_name}"
            )
    return space


def parse_dimension(word: str) -> Dimension:
    """One ``KEY=VALUES``.

    >>> parse_dimension("optim.base_lr=1e-4:1e-2:log").high
    0.01
    >>> parse_dimension("posenc_BPEARL.num_layers=3,5,7").choices
    (3, 5, 7)
    """
    key, equals, text = word.partition("=")
    if not equals or not text:
        raise ConfigError(
            f"--keys {word}: expected KEY=A,B,C or KEY=LOW:HIGH, such as optim.base_lr=1e-4:1e-2:log"
        )
    parts = [part.strip() for part in text.split(",")]
    if key not in config.SCHEMA:
        config.read(key, text)  # which says what is near
    entry = config.SCHEMA[key]
    if key in NOT_SEARCHED or not entry.used or entry.is_list:
        raise ConfigError(f"--keys {key}: is no key to search over; set it once, as KEY VALUE")
    if ":" in text and entry.type in (int, float):
        return _range(key, text)
    choices = tuple(config.read(key, part) for part in parts)
    if len(set(choices)) < len(choices) or len(choices) < 2:
        raise ConfigError(
            f"--keys {word}: expected two or more different values, or KEY VALUE for a fixed one"
        )
    return Dimension(key, text, choices=choices)


def _range(key: str, text: str) -> Dimension:
    low_text, high_text, *how = text.split(":")
    low, high = config.read(key, low_text), config.read(key, high_text)
    wrong = f"--keys {key}={text}: "
    if not low < high:
        raise ConfigError(f"{wrong}expected LOW:HIGH with LOW below HIGH")
    if how == ["log"]:
        if low <= 0:
            raise ConfigError(f"{wrong}a logarithmic range starts above 0")
        return Dimension(key, text, low=low, high=high, log=True)
    if not how:
        return Dimension(key, text, low=low, high=high)
    try:
        step = config.SCHEMA[key].type(how[0]) if len(how) == 1 else 0
    except ValueError:
        step = 0
    if not 0 < step <= high - low:
        raise ConfigError(f"{wrong}expected LOW:HIGH, LOW:HIGH:log or LOW:HIGH:STEP")
    return Dimension(key, text, low=low, high=low + int((high - low) / step + 1e-9) * step, step=step)
