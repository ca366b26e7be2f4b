"""``python -m graphgps_pearl.config`` writes the text of ``docs/configuration.md``, made from the schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import yaml

from graphgps_pearl.config.key import Key, Value
from graphgps_pearl.config.schema import groups

_INTRODUCTION = """\
# Configuration

Made from the schema by `python -m graphgps_pearl.config > docs/configuration.md`.

A config file holds deltas: what it does not set keeps the default below. The defaults are upstream GraphGPS's
(but for `num_threads`, which chooses by itself), so a GraphGPS file means the same here. The configs that
come with the project are such deltas too; each run's folder holds a `config.yaml` with every key written out.

    python main.py --cfg configs/FILE.yaml optim.base_lr 5e-4 posenc_BPEARL.num_taps 4

After the file come overrides, pairs `KEY VALUE`. A value is read by what its key expects:
`1e-5` and `1` are numbers, `range(1,21)` is a range and never evaluated, lists are written `[30, 60]`. An
unknown key, a wrong type, a value out of range or a combination that cannot work ends with one line that
names file, line, key, value, what is allowed, and the nearest key.

Naming an encoding in `dataset.node_encoder_name` (such as `Atom+BPEARL`) switches it on; `posenc_*.enable`
need not be set and may not contradict it. Naming other encodings on the command line switches the file's off.
RWSE, LapPE and SignNet are empty by upstream's defaults; what a named one lacks and no file sets is filled
in, and a log line says with what. Keys that have been renamed load under their old names, with a log line.

A file that begins with `base: OTHER.yaml` holds deltas from that file, which lies in the same folder: so
`configs/zinc-bpearl.yaml` says what it changes in `configs/zinc-none.yaml`.

A file may hold plain YAML only: no tags, no anchors or aliases, no key twice.
"""

_ADDING = """\
## Keys of your own

An encoder of your own that needs settings adds its group before the config is loaded:

    from graphgps_pearl import config
    config.add_group("posenc_Mine", {
        "enable": config.Key(False, "Set by naming the encoding."),
        "dim_pe": config.Key(16, "Columns of the encoding.", min=1),
    })

Such groups are read, checked and handed to GraphGym's `cfg` like all others.
"""


def document() -> str:
    """The reference of all keys as Markdown."""
    parts = [_INTRODUCTION]
    unused: dict[str, Key] = {}
    for name, about, keys in groups():
        used = {key: entry for key, entry in keys.items() if entry.used}
        unused |= {key: entry for key, entry in keys.items() if not entry.used}
        if used:
            title = f"## `{name}`" if name else "## Outside any group"
            rows = [
                (f"`{key}`", _code(entry.default), entry.allowed, entry.help) for key, entry in used.items()
            ]
            parts.append(f"{title}\n\n{about}\n\n{_table(('key', 'default', 'allowed', 'meaning'), rows)}")
    rows_unused = [(f"`{key}`", _code(entry.default), entry.help) for key, entry in unused.items()]
    parts.append(
        "## Accepted, not used\n\nKeys of GraphGym, GraphGPS and earlier versions that nothing in this "
        "package reads, and why. A log line names those that a file sets to something else.\n"
    )
    return "\n".join([*parts, _table(("key", "default", "why"), rows_unused), _ADDING])


def _code(value: Value) -> str:
    written = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    return f"`{written}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(_cell(text) for text in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"<(?=\w)", "&lt;", text.replace("|", "\\|"))  # <word would be taken for HTML


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # whatever the terminal's encoding
    sys.stdout.write(document())
