"""Configs of any kind: real ones with words changed, and KEY VALUE words. Each loads, or ends in one line.

A config that loads must be the config that its own dump describes; anything else was understood wrongly in
silence.
"""

from __future__ import annotations

import random
from pathlib import Path

from attacks.tally import Tally
from graphgps_pearl import config

_JUNK = [
    *("", "null", "true", "-1", "0", "1e999", "nan", "9" * 400, "[]", "[[1]]", "{}", "{a: 1}", "~", "'", '"'),
    *("&a x", "*a", "!!python/name:os.system", "<<: {}", "\t", "\0", "\x1b[2J", "é", "\ud800"),
    *("- ", ": ", "? ", "../x", "/etc/passwd", "range(1,1000000000)", "range(1,2,0)"),
    *("Atom+Atom", "BPEARL", "x" * 5000, "1_000"),
]


def mutate(text: str, other: str, rng: random.Random) -> str:
    """A config's text with a few changes of lines, words and characters; some lines come from another one."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(12)
        if kind == 0:
            key = lines[at].split(":")[0]
            lines[at] = f"{key}: {rng.choice(_JUNK)}"
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            del lines[at]
        elif kind == 3:
            lines[at] = " " * rng.randrange(5) + lines[at].strip()
        elif kind == 4 and lines[at]:
            place = rng.randrange(len(lines[at]))
            lines[at] = (
                lines[at][:place] + chr(rng.choice([0, 9, 10, 27, 34, 58, 123, 0x2028])) + lines[at][place:]
            )
        elif kind == 5:
            lines[at] = rng.choice(_JUNK)
        else:
            key = lines[at].split(":")[0] + ":"
            alike = [line for line in other.split("\n") if line.startswith(key)]
            lines[at] = rng.choice(alike or lines)
        text = "\n".join(lines)
    return text


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Load ``count`` changed configs, every third with KEY VALUE words as well."""
    tally, rng = Tally("fuzzed configs"), random.Random(seed)
    texts = [config.dump(config.load(file)) for file in sorted(folder.glob("*.yaml"))[::5]]
    keys = sorted(config.SCHEMA)
    for number in range(count):
        text = mutate(rng.choice(texts), rng.choice(texts), rng)
        words: list[str] = []
        if number % 3 == 0:
            words = [rng.choice(keys), rng.choice(_JUNK)] * rng.randint(1, 2)

        def use(text: str = text, words: list[str] = words) -> bool:
            cfg = config.parse(text, words)
            written = config.dump(cfg)
            return config.dump(config.parse(written)) == written

        tally.attempt(f"number {number}, seed {seed}", use)
    return tally
