"""One wrong bit, or a page of zeros, in each kind of file that the package writes and reads again.

It holds if the damage is told, or if what is read is what was written (a changed space in a JSON file).
"""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from attacks.tally import Tally
from graphgps_pearl.data import cache
from graphgps_pearl.inference import folder as model_folder
from graphgps_pearl.runs.checkpoints import read_checkpoint
from graphgps_pearl.runs.folder import RunFolder

Read = Callable[[Path], object]
_PAGE = 4096


def damage(content: bytes, rng: random.Random) -> bytes:
    """What a failing disk or memory does: one bit flipped; in one of ten, a page of zeros instead."""
    changed, place = bytearray(content), rng.randrange(len(content))
    if rng.randrange(10) == 0:
        changed[place : place + _PAGE] = bytes(len(changed[place : place + _PAGE]))
    else:
        changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cache(file: Path) -> object:
    state = cache.load(file, ("graphs",))
    return None if state is None else cache.digest(state)


def _checksums(file: Path) -> object:
    return cache.checksum(file.with_name("large"), file)


def _checkpoint(file: Path) -> object:
    content = read_checkpoint(file)
    return cache.digest({key: content[key] for key in ("state_dict", "position", "callbacks")})


def _of_run(file: Path) -> object:
    return RunFolder(file.parent).read(file)


def _all_of_run(file: Path) -> object:
    folder = RunFolder(file.parent)
    return [folder.read(path) for path in (folder.config, folder.data)]


def _of_model(file: Path) -> object:
    return json.dumps(model_folder.read_facts(file.parent).to_json())


#: Kind of file -> (its name in the folder that :func:`prepare` fills, how it is read).
KINDS: dict[str, tuple[str, Read]] = {
    "dataset cache, graphs": ("data/graphs.pt", _cache),
    "dataset cache, after transforms": ("data/transformed.pt", _cache),
    "checksums of raw files": ("data/checksums.json", _checksums),
    "last.ckpt": ("run/last.ckpt", _checkpoint),
    "best.ckpt": ("run/best.ckpt", _checkpoint),
    "metrics.csv": ("run/metrics.csv", _of_run),
    "config.yaml of a run": ("run/config.yaml", _of_run),
    "data.json of a run": ("run/data.json", _of_run),
    "result.json of a run": ("run/result.json", _of_run),
    "checksums.json of a run": ("run/checksums.json", _all_of_run),
    "model.safetensors": ("model/model.safetensors", _of_model),
    "model.json": ("model/model.json", _of_model),
    "config.yaml of a model": ("model/config.yaml", _of_model),
}


def prepare(folder: Path, run: Path, prepared: Path, model: Path) -> None:
    """Lay out the files of a finished run, its dataset cache and its model in ``folder``."""
    shutil.copytree(run, folder / "run")
    shutil.copytree(model, folder / "model")
    (folder / "data").mkdir()
    caches = sorted(prepared.glob("*.pt"), key=lambda file: file.stat().st_size)
    for file, name in zip(caches, ("graphs.pt", "transformed.pt"), strict=True):
        shutil.copy(file, folder / "data" / name)
    (folder / "data" / "large").write_bytes(bytes(5 << 20))
    cache.checksum(folder / "data" / "large", folder / "data" / "checksums.json")


def attack(kind: str, count: int, seed: int, folder: Path) -> Tally:
    """``count`` times one kind of file, damaged and read."""
    name, read = KINDS[kind]
    file, tally, rng = folder / name, Tally(kind), random.Random(f"{seed} {kind}")
    whole, good = file.read_bytes(), read(file)
    if good is None:
        raise ValueError(f"{file} is not read even when it is whole")
    logging.disable(logging.ERROR)
    try:
        for number in range(count):
            file.write_bytes(damage(whole, rng))
            if file.read_bytes() == whole:  # zeros over zeros
                tally.note("held")
                continue
            tally.attempt(f"number {number}, seed {seed}", lambda: read(file) in (None, good))
    finally:
        logging.disable(logging.NOTSET)
        file.write_bytes(whole)
    return tally
