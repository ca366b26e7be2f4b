"""Attempts and their outcomes: held, silent (a wrong thing was used without a word), or a traceback."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from graphgps_pearl.errors import UserError

#: Longest that one attempt may take, in seconds of processor time, before it counts as a hang.
MOST_SECONDS = 60.0
_LONGEST_LINE = 4000


@dataclass
class Tally:
    """Counts of one kind of attack, and what went wrong in words."""

    name: str
    tried: int = 0
    held: int = 0
    silent: int = 0
    traceback: int = 0
    problems: list[str] = field(default_factory=list)

    def note(self, outcome: str, about: str = "") -> None:
        """Count an outcome: ``held``, ``silent`` or ``traceback``."""
        self.tried += 1
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome != "held":
            self.problems.append(f"{self.name}: {outcome}: {about}")

    def attempt(self, about: str, use: Callable[[], bool]) -> None:
        """Use something hostile. It holds if a UserError of one line is raised, or if ``use`` gives True:
        what was used is what it should be."""
        began = time.process_time()
        try:
            outcome, why = ("held", "") if use() else ("silent", "used")
        except UserError as error:
            sound = str(error).isprintable() and len(str(error)) < _LONGEST_LINE
            outcome, why = ("held", "") if sound else ("traceback", f"not one line: {str(error)[:200]!r}")
        except Exception as error:  # whatever else comes out is what is looked for
            outcome, why = "traceback", f"{type(error).__name__}: {str(error)[:200]}"
        if time.process_time() - began > MOST_SECONDS:
            outcome, why = "traceback", f"took {time.process_time() - began:.0f} s"
        self.note(outcome, f"{about}: {why}")


def table(tallies: list[Tally]) -> str:
    """The outcomes as a Markdown table."""
    lines = ["| attack | tried | held | silent | traceback |", "|---|---|---|---|---|"]
    lines += [f"| {t.name} | {t.tried:,} | {t.held:,} | {t.silent} | {t.traceback} |" for t in tallies]
    return "\n".join(lines)
