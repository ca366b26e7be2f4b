"""Child processes that end with their parent, however the parent ends; and signals that end a process.

The parent holds the writing end of a pipe that is the child's standard input. The kernel closes it when the
parent is gone, ``kill -9`` included, and the child then stops as if it had received SIGTERM: a run saves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

_VARIABLE = "GRAPHGPS_PEARL_END_WITH_PARENT"
#: How long an orphan may take to save.
GRACE_SECONDS = 60.0
#: Signals that ask a process to end, Ctrl-C apart. Windows has no SIGHUP.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def start_child(
    command: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start one of this package's commands, to end when this process ends; ``options`` are ``Popen``'s.

    The returned object's ``stdin`` has to stay open for as long as the child is to live.
    """
    environment = {**(os.environ if environment is None else environment), _VARIABLE: "1"}
    return subprocess.Popen(list(command), stdin=subprocess.PIPE, env=environment, **options)


def end_with_parent() -> None:
    """In a process that :func:`start_child` started: watch for the parent's end. Elsewhere: nothing."""
    if os.environ.pop(_VARIABLE, None):  # not for this process's own children
        threading.Thread(target=_watch, name="end-with-parent", daemon=True).start()


def _watch() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(128 + signal.SIGTERM)


class StoppedError(BaseException):
    """SIGTERM, SIGHUP or Ctrl-C; ``number`` is the signal, ``code`` the conventional exit code.

    Like ``KeyboardInterrupt`` no ``Exception``, so that what handles those does not take it for one.
    """

    def __init__(self, number: int, then: str = "") -> None:
        name = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
        super().__init__(f"{name}; {then}" if then else name)
        self.number = number
        self.code = 128 + number
        self.then = then


def handle_signals(
    handler: Callable[[int, FrameType | None], None], numbers: Iterable[int]
) -> dict[int, Any]:
    """Set a handler for those signals that are not ignored (as under nohup); returns the former ones."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    process = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:
            handler(number, frame)
        else:  # a forked child, such as a data worker, which ends as if there were no handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    heeded = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    return {number: signal.signal(number, handle) for number in heeded}


@contextlib.contextmanager
def signals_as_errors() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise :class:`StoppedError`, as Ctrl-C raises ``KeyboardInterrupt``."""

    def stop(number: int, _: FrameType | None) -> None:
        raise StoppedError(number)

    former = handle_signals(stop, ENDING)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def say_when_stopped(then: Callable[[], str]) -> Iterator[None]:
    """Have a signal's error say what the user can do next, unless it says so already."""
    try:
        yield
    except (StoppedError, KeyboardInterrupt) as stop:
        number = stop.number if isinstance(stop, StoppedError) else signal.SIGINT
        raise StoppedError(number, getattr(stop, "then", "") or then()) from stop
