"""SIGTERM and Ctrl-C noted, to be acted on between two batches, where the run's state is whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from graphgps_pearl.errors import UserError


class InterruptedRunError(UserError):
    """Ctrl-C or SIGTERM: the run can be continued; ``code`` is the conventional exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class StopSignals:
    """Remembers the first SIGTERM or SIGINT; a second SIGINT interrupts at once.

    Lightning's trainer puts the former handlers back when it ends.
    """

    def __init__(self) -> None:
        self.received = 0

    def install(self) -> None:
        """Take over from Lightning's handlers, which stop wherever the program happens to be."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._note)
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number


def interrupted(number: int, folder: object) -> InterruptedRunError:
    """What a run that was stopped by this signal says."""
    name = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
    return InterruptedRunError(f"{name}; saved, the same command continues {folder}", 128 + number)
