"""What every command does around its work: logging to the terminal, and mistakes as one line."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable

from graphgps_pearl.errors import UserError
from graphgps_pearl.escaping import printable
from graphgps_pearl.extras import named_extras


class _PlainLines(logging.Formatter):
    """Lines without control characters: names in them may come from files of others."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(printable, super().format(record).split("\n")))


def run_command(work: Callable[[], object]) -> int:
    """Do the work; a user's mistake becomes one line on standard error and an exit code (2 by default, 130
    for Ctrl-C)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainLines("%(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("graphgps_pearl").setLevel(logging.INFO)
    try:
        with named_extras():
            work()
    except UserError as error:
        print(f"error: {printable(error)}", file=sys.stderr)
        return getattr(error, "code", 2)
    except BrokenPipeError:  # nobody reads on, as in | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"error: cannot write ({error.strerror}); free some space and try again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return 0
