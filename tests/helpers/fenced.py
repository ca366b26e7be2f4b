"""Fenced blocks of the documentation, and the commands in them as the shell would run them."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SEPARATOR, _SLASH = "\x1f", "@@"
# Every word that is no builtin comes here instead of being run.
_RECORD = """
PATH=/nowhere
record() { local IFS=$'\\x1f'; printf '%s\\n' "$*" >> "$LOG"; }
command_not_found_handle() { record "$@"; }
cd() { :; }
source() { :; }
"""


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language and text."""

    file: Path
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(REPOSITORY)}:{self.number}"


def pages() -> list[Path]:
    """What people read: the pages of the top-level folder and of ``docs/``."""
    return [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks(*languages: str) -> list[Block]:
    """The blocks of all pages in these languages."""
    return [
        Block(file, number, match[1], match[2])
        for file in pages()
        for number, match in enumerate(_FENCE.finditer(file.read_text()))
        if match[1] in languages
    ]


def commands(text: str, folder: Path) -> list[list[str]]:
    """What a shell script would run, word by word, loops and quotes resolved; nothing is run."""
    log = folder / "commands.log"
    # Redirections are the shell's own and do happen: in a folder where they hurt nobody.
    (folder / "shell" / "docs").mkdir(parents=True)
    # The shell does not look for what has a slash in its name; so it gets another sign.
    text = re.sub(r"\.venv/bin/", "", text)
    text = re.sub(r"(?<![\w.])\./\w[\w./-]*", lambda path: path[0].replace("/", _SLASH), text)
    done = subprocess.run(
        ["bash", "-c", _RECORD + text],
        env={**os.environ, "LOG": str(log)},
        cwd=folder / "shell",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.replace(_SLASH, "/").split(_SEPARATOR) for line in lines]
