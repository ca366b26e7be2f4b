"""Training in child processes that can be killed, forked from a server that has everything imported."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import BinaryIO

from helpers.small_runs import train

Arguments = tuple[Path, Path, list[str]]
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["graphgps_pearl.registry", "graphgps_pearl.training.run"])


def heed_signals() -> None:
    """Undo what nohup and a shell's ``&`` do: they have some signals ignored, and children inherit that."""
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def start(
    arguments: Arguments, output: Path, before: Callable[..., None] | None = None, *args: object
) -> BaseProcess:
    """Start a run; ``before(*args)`` is called in the child first."""
    child = _context.Process(target=_child, args=(arguments, output, before, args))
    child.start()
    return child


def _child(arguments: Arguments, output: Path, before: Callable[..., None] | None, args: tuple) -> None:
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    if before is not None:
        before(*args)
    os._exit(train(*arguments))


def kill_at_operation(number: int) -> None:
    """Kill this process, as kill -9 does, at the given one of its operations on files.

    Operations are forcing to disk, renaming, copying, and every write of a checkpoint, which is cut in two.
    """
    from graphgps_pearl import files

    count = [0]

    def now() -> bool:
        count[0] += 1
        return count[0] == number

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def before(function):
        def wrapped(*args, **kwargs):
            if now():
                die()
            return function(*args, **kwargs)

        return wrapped

    os.fsync = before(os.fsync)
    Path.replace = before(Path.replace)  # type: ignore[method-assign]
    shutil.copyfileobj = before(shutil.copyfileobj)
    fill = files.fill

    def half(file: BinaryIO, content: files.Content) -> None:
        if isinstance(content, bytes) and now():
            file.write(content[: len(content) // 2])
            file.flush()
            die()
        fill(file, content)

    files.fill = half


def join_processes(rank: int, world_size: int, port: int) -> None:
    """Make this process one of several, with the environment that torchrun gives."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "GROUP_RANK": "0",
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "test",
    }


def start_together(
    arguments: Arguments, output: Path, world_size: int, before: Callable[[int], None] | None = None
) -> list[BaseProcess]:
    """Start the processes of one run; ``before(rank)`` is called in each first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        start(arguments, output.with_suffix(f".{rank}"), _joined, rank, world_size, port, before)
        for rank in range(world_size)
    ]


def _joined(rank: int, world_size: int, port: int, before: Callable[[int], None] | None) -> None:
    join_processes(rank, world_size, port)
    if before is not None:
        before(rank)
