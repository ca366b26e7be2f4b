"""What every command does around its work: logging to the terminal, and mistakes as one line."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable

from graphgps_pearl.errors import UserError
from graphgps_pearl.escaping import printable
from graphgps_pearl.extras import named_extras
from graphgps_pearl.files import is_full, write_failed
from graphgps_pearl.processes import StoppedError, end_with_parent, signals_as_errors
from graphgps_pearl.terminal import width, wrap


class _PlainLines(logging.Formatter):
    """Lines without control characters: names in them may come from files of others. In a terminal they
    break between words."""

    def format(self, record: logging.LogRecord) -> str:
        columns = width() if sys.stderr.isatty() else None
        return "\n".join(wrap(printable(line), columns) for line in super().format(record).split("\n"))


def run_command(work: Callable[[], object]) -> int:
    """Do the work; a user's mistake becomes one line on standard error and an exit code (2 by default, 130
    for Ctrl-C)."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # letters that its encoding lacks are shown as \u0398
        sys.stdout.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainLines("%(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("graphgps_pearl").setLevel(logging.INFO)
    try:
        with named_extras(), signals_as_errors():
            end_with_parent()
            work()
    except UserError as error:
        print(f"error: {printable(error)}", file=sys.stderr)
        return getattr(error, "code", 2)
    except BrokenPipeError:  # nobody reads on, as in | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        reason = write_failed(error)
        if reason is None:
            raise
        where = f"{printable(error.filename)}: " if error.filename else ""
        remedy = "free some space" if is_full(error) else "see that it is there and can be written"
        print(f"error: {where}{reason}; {remedy}, then try again", file=sys.stderr)
        return 2
    except StoppedError as stop:
        print(f"error: {printable(stop)}", file=sys.stderr)
        return stop.code
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return 0
