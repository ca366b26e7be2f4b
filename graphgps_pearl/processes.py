"""Child processes that end with their parent, however the parent ends.

The parent holds the writing end of a pipe that is the child's standard input. The kernel closes it when the
parent is gone, ``kill -9`` included, and the child then stops as if it had received SIGTERM: a run saves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

_VARIABLE = "GRAPHGPS_PEARL_END_WITH_PARENT"
#: How long an orphan may take to save.
GRACE_SECONDS = 60.0


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
