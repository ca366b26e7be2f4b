"""SIGTERM, SIGHUP and Ctrl-C noted, to be acted on between two batches, where the run's state is whole."""

from __future__ import annotations

import signal
from types import FrameType

from graphgps_pearl.processes import ENDING, handle_signals


class StopSignals:
    """Remembers the first of these signals; a second Ctrl-C interrupts at once.

    Lightning's trainer puts the former handlers back when it ends.
    """

    def __init__(self) -> None:
        self.received = 0

    def install(self) -> None:
        """Take over from Lightning's handlers, which stop wherever the program happens to be."""
        handle_signals(self._note, (*ENDING, signal.SIGINT))

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number
