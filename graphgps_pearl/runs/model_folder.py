"""The files of a model folder: everything that predictions need, and no training data.

====================  =============================================================================
``model.safetensors``  the weights
``config.yaml``        the resolved config, without paths of the machine it was trained on
``model.json``         ``format_version``, what the model has to know of its data, and a SHA-256 of
                       every file (``files``) and of its own values (``sha256``)
``README.md``          the model card, for people
====================  =============================================================================

Nothing in it can run code, and nothing is read of a file that is not the one exported; an edited card is only
mentioned. torch is imported only to read weights, so that the command line can name models without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgps_pearl.config import shipped
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)

FORMAT_VERSION = 2
WEIGHTS, CONFIG, DESCRIPTION, CARD = "model.safetensors", "config.yaml", "model.json", "README.md"
#: The models that come with the package, one folder each.
SHIPPED = Path(__file__).parents[1] / "models"
_MOST_BYTES = 10_000_000


def shipped_names() -> list[str]:
    """Names that ``load``, ``pretrained.dir`` and the commands take for shipped models."""
    return sorted(file.parent.name for file in SHIPPED.glob(f"*/{DESCRIPTION}"))


def find_model(word: str | Path) -> Path | None:
    """The model folder that a word names, a folder or else a shipped model; None if it names neither."""
    place = Path(word).expanduser()
    if not place.exists() and str(word) in shipped_names():
        return SHIPPED / str(word)
    return place if (place / DESCRIPTION).is_file() else None


def is_config(path: Path) -> bool:
    """Whether a path is a config file, or the name of a shipped config, rather than a model."""
    if path.suffix in shipped.SUFFIXES:
        return True
    return not path.exists() and str(path) not in shipped_names() and str(path) in shipped.names()


def write_description(content: Mapping[str, Any], folder: Path) -> None:
    """Write ``model.json`` with the checksums of the folder's other files."""
    sums = {name: _sha256(folder / name) for name in (WEIGHTS, CONFIG, CARD)}
    complete = {"format_version": FORMAT_VERSION, **content, "files": sums}
    complete["sha256"] = _sha256_of(complete)
    text = json.dumps(complete, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def read_description(folder: Path) -> dict[str, Any]:
    """What ``model.json`` says, whose checksums must be those of the other files."""
    file = folder / DESCRIPTION
    content = _read_json(file)
    sums = content.pop("files", None)
    if not isinstance(sums, dict):
        raise DataError(f"{file}: has no checksums of the model's files; export the model again")
    for name in (CONFIG, WEIGHTS, CARD):
        if not (folder / name).is_file():  # a FIFO in its place would wait for ever
            if name == CARD:
                continue
            raise DataError(f"{folder / name}: is missing, or not a file; get the model again")
        if _sha256(folder / name) == sums.get(name):
            continue
        if name != CARD:
            raise DataError(
                f"{folder / name}: is damaged or changed (its checksum differs); get the model again"
            )
        log.warning("%s is not the one that was exported", folder / name)
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights by name; :func:`read_description` has to have found the folder whole."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / WEIGHTS
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{file}: cannot be read ({first_line(error)}); get the model again") from error


def _read_json(file: Path) -> dict[str, Any]:
    """``model.json``, refused if it is damaged or its format is another one than this version writes."""
    try:
        with file.open("rb") as stream:
            content = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read ({first_line(error)}); get the model again") from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DataError(
            f"{file}: format_version is {str(version)[:60]!r}, this graphgps_pearl reads {FORMAT_VERSION}; "
            "use the version that wrote it, or export the model again"
        )
    known = content.pop("sha256", None)
    if _sha256_of(content) != known:
        raise DataError(f"{file}: is damaged or changed (its checksum differs); get the model again")
    return dict(content)


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); get the model again") from error


def _sha256_of(content: dict[str, Any]) -> str:
    """Of the values, however the file is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
