"""A command in one file: a function of (argv, prog) that returns an exit code, and its line in the table."""

import argparse
from collections.abc import Sequence

from graphgps_pearl import cli, config
from graphgps_pearl.command import run_command


def keys(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``keys GROUP``: the keys of a config group."""
    parser = argparse.ArgumentParser(prog=prog, description="List the keys of a config group.")
    parser.add_argument("group")
    args = parser.parse_args(argv)

    def work() -> None:
        for key, entry in config.SCHEMA.items():
            if key.startswith(f"{args.group}."):
                print(f"{key}: {entry.help}")

    return run_command(work)


cli.COMMANDS["keys"] = (f"{__name__}:keys", "list the keys of a config group")
