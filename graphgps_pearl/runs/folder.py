"""What a run leaves on disk, ``<out_dir>/<config>[-name_tag]/<seed>/``, and how it is found again.

=================  ==================================================================
``config.yaml``    the resolved config
``versions.json``  Python and library versions
``machine.json``   hardware and command of the last start; not exported with a model
``data.json``      sizes and names of the data, statistics of standardised targets
``metrics.csv``    one row per epoch
``targets.csv``    the best epoch's metrics of each target, where there are several
``last.ckpt``      to resume from; ``previous.ckpt`` is the one before
``best.ckpt``      the epoch with the best selection metric; ``previous-best.ckpt``
                   is the best before it
``result.json``    written once, at the end: the run is finished
``checksums.json`` of the text files above, which are compared when they are read
``events.out.*``   TensorBoard
=================  ==================================================================

Files are written under a temporary name and renamed, so each is whole or absent. Epochs count from 0 in
files, from 1 in what people read.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import logging
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.config.yaml_text import parse_yaml
from graphgps_pearl.errors import UserError
from graphgps_pearl.files import DamagedFileError, exclusive, hash_of, remove_partial, write_atomically
from graphgps_pearl.terminal import command_line

log = logging.getLogger(__name__)

#: Keys that tell runs of one config apart.
REPEAT_KEYS = frozenset({"seed", "name_tag", "dataset.split_index", "run_multiple_splits"})
#: Keys that may differ between a run and its continuation: they change no number.
HARMLESS_KEYS = frozenset(
    {
        "out_dir",
        "dataset.dir",
        "num_threads",
        "num_workers",
        "accelerator",
        "devices",
        "train.max_params",
        "train.ckpt_every_batches",
        "train.ckpt_every_seconds",
        "wandb.use",
        "wandb.entity",
        "wandb.project",
        "wandb.name",
    }
)
#: Why a run that ``compare`` or ``search`` started ended early.
FAILURE = "failed.txt"
_MAX_EPOCH = "optim.max_epoch"
_EPOCHS = frozenset({_MAX_EPOCH})
#: Schedules whose rate at an epoch does not depend on ``optim.max_epoch``.
_OPEN_SCHEDULES = ("none", "step", "reduce_on_plateau")
#: What a result must have to be one.
_RESULT = {"config": str, "splits": list, "parameters": dict, "metric": str, "best": dict, "epochs": int}
_LIBRARIES = ("torch", "torch-geometric", "lightning", "torchmetrics", "rdkit", "ogb", "numpy")


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as ``{"a.b": value}``."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        flat |= flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def stored_config(config_text: str) -> dict[str, Any]:
    """A stored config as nested mappings."""
    parse_yaml(config_text, "config.yaml")  # refuses aliases and tags, bounds size and depth
    return yaml.safe_load(config_text)


def settings(config_text: str) -> dict[str, Any]:
    """Every key of a stored config, by its present name; one that it does not have yet was at its default."""
    stored = flatten(stored_config(config_text))
    return flatten(config.defaults()) | {config.RENAMED.get(key, key): stored[key] for key in stored}


def first_change(
    old: Mapping[str, Any], new: Mapping[str, Any], ignored: frozenset[str] = frozenset()
) -> str | None:
    """Which key of two configs' settings differs and matters, in words; None if none does."""
    for key in sorted((old.keys() | new.keys()) - HARMLESS_KEYS - ignored):
        both_in_folds = key == "run_multiple_splits" and old.get(key) and new.get(key)
        if old.get(key) != new.get(key) and not both_in_folds:  # a fold is the same among any others
            return f"{key} = {old.get(key)!r} instead of {new.get(key)!r}"
    return None


def config_folder(out_dir: Path, cfg_file: Path, name_tag: str) -> Path:
    """``<out_dir>/<config>[-name_tag]``, the folder of a config's runs."""
    return out_dir / (f"{cfg_file.stem}-{name_tag}" if name_tag else cfg_file.stem)


class RunFolder:
    """One run's folder: paths, atomic writes, and the rows of ``metrics.csv``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.csv"
        self.targets = path / "targets.csv"
        self.last = path / "last.ckpt"
        self.previous = path / "previous.ckpt"
        self.best = path / "best.ckpt"
        self.previous_best = path / "previous-best.ckpt"
        self.data = path / "data.json"
        self.result = path / "result.json"
        self._checksums = path / "checksums.json"

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes from training this run meanwhile."""
        return exclusive(
            self.path.parent / f".{self.path.name}.lock",
            f"{self.path} is being trained by another process; wait for it, or give name_tag NAME "
            "for a run of its own",
        )

    def open(self, config_text: str, *, overwrite: bool = False) -> None:
        """Make the folder, or make sure that what it holds is this very run.

        A run that is to be replaced is put aside until it is certain that the new one can begin. If the
        process is killed before, the next start without ``overwrite`` puts it back.
        """
        if not overwrite:
            self.restore_replaced()
        if overwrite and self.path.exists():
            if self._has_begun():
                self.forget_replaced()
                self.path.rename(self._replaced)
            else:
                shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        remove_partial(self.path)
        if self._has_begun():
            self._require_same(config_text)
        else:
            self.write(self.config, config_text)
        for name, content in (("versions.json", versions()), ("machine.json", machine())):
            self.write(self.path / name, json.dumps(content, indent=2) + "\n")
        (self.path / FAILURE).unlink(missing_ok=True)  # it was of the start before

    def _has_begun(self) -> bool:
        return any(p.exists() for p in (self.last, self.previous, self.best, self.result))

    @property
    def _replaced(self) -> Path:
        return self.path.with_name(f".{self.path.name}.replaced")

    def forget_replaced(self) -> None:
        """The new run can begin: delete the one it replaces."""
        shutil.rmtree(self._replaced, ignore_errors=True)

    def restore_replaced(self) -> None:
        """The new run came to nothing: put the one it was to replace back."""
        if self._replaced.exists() and not self._has_begun():
            shutil.rmtree(self.path, ignore_errors=True)
            self._replaced.rename(self.path)

    def require_same_data(self, identity: str) -> None:
        """Make sure that a run which is to be continued began with this data."""
        if not (self.last.exists() or self.previous.exists()) or not self.data.exists():
            return
        try:
            text = self.read(self.data)
        except DamagedFileError as error:
            raise UserError(f"{error}; delete it to continue the run with the present data") from error
        with contextlib.suppress(ValueError, AttributeError):
            if json.loads(text).get("identity", identity) != identity:
                raise UserError(
                    f"{self.path} was begun with other data (a changed file, or another version of "
                    "what reads it): give --overwrite to train it again, or name_tag NAME to keep both"
                )

    def _require_same(self, config_text: str) -> None:
        """Refuse another config, but for what changes no number, and for more epochs where possible."""
        try:
            old = settings(self.read(self.config))
        except (yaml.YAMLError, ValueError, AttributeError, TypeError, OSError, UserError) as error:
            said = f": {error}" if isinstance(error, UserError) else f" ({type(error).__name__})"
            raise UserError(
                f"{self.config} cannot be read{said}; so what run this is is not known: "
                "give --overwrite to replace it, or name_tag NAME to keep both"
            ) from error
        new = settings(config_text)
        changed = first_change(old, new, _EPOCHS) or first_change(old, new)
        if changed is None:
            return
        if first_change(old, new, _EPOCHS) is None and new[_MAX_EPOCH] > old[_MAX_EPOCH]:
            if new["optim.scheduler"] in _OPEN_SCHEDULES:
                self._raise_epochs(config_text, old[_MAX_EPOCH], new[_MAX_EPOCH])
                return
            changed += f", on which the rates of optim.scheduler = {new['optim.scheduler']} depend"
        raise UserError(
            f"{self.path} holds a run with {changed}: "
            "give --overwrite to replace that run, or name_tag NAME to keep both"
        )

    def _raise_epochs(self, config_text: str, old: int, new: int) -> None:
        log.info("%s: optim.max_epoch raised from %d to %d, the run goes on", self.path, old, new)
        self.result.unlink(missing_ok=True)  # first: a finished run must not have more epochs to go
        self.write(self.config, config_text)

    def is_same(self, config_text: str) -> bool:
        """Whether the run in this folder has this very config but for what changes no number."""
        try:
            return first_change(settings(self.read(self.config)), settings(config_text)) is None
        except (yaml.YAMLError, ValueError, AttributeError, TypeError, OSError, UserError):
            return False

    def write(self, path: Path, text: str) -> None:
        """Write a text file of the folder whole or not at all, and note its checksum."""
        known = self._known_checksums()
        before = known.get(path.name, [])[:1]
        # Both are known until the file is in place: a process may be killed in between.
        known[path.name] = [hash_of(text.encode()), *before]
        write_atomically(self._checksums, json.dumps(known, indent=2) + "\n")
        write_atomically(path, text)

    def read(self, path: Path) -> str:
        """A text file of the folder, if it is as it was written; without a checksum, as it is."""
        content = path.read_bytes()
        while (known := self._known_checksums().get(path.name)) is not None and hash_of(content) not in known:
            # The run may have written it again, twice, since it was read.
            before, content = content, path.read_bytes()
            if content == before:
                raise DamagedFileError(f"{path}: is damaged, or was changed by hand (its checksum differs)")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise DamagedFileError(f"{path}: is damaged (byte {error.start} is not UTF-8 text)") from None

    def _known_checksums(self) -> dict[str, list[str]]:
        if not self._checksums.exists():
            return {}
        try:
            known = json.loads(self._checksums.read_bytes())
            return {str(name): [str(digest) for digest in digests] for name, digests in known.items()}
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise DamagedFileError(
                f"{self._checksums}: is damaged; delete it if the other files are in order"
            ) from None

    def read_result(self) -> dict[str, Any] | None:
        """The finished run's result; None while it is unfinished, or, with a line, where it is damaged."""
        if not self.result.exists():
            return None
        try:
            found = json.loads(self.read(self.result))
            if not isinstance(found, dict):
                raise TypeError("not a result")
            for key, kind in _RESULT.items():
                if not isinstance(found[key], kind):
                    raise TypeError(key)
        except (ValueError, TypeError, KeyError, RecursionError, DamagedFileError):
            log.warning("%s is damaged; the command that trained it writes it again", self.result)
            return None
        return found

    def write_metrics(self, columns: Sequence[str], rows: Sequence[Mapping[str, float]]) -> None:
        """Write ``metrics.csv``: one row per epoch, empty where there is no value."""
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**row, "epoch": int(row["epoch"])} for row in rows)
        self.write(self.metrics, table.getvalue())

    def read_metrics(self) -> list[dict[str, str]]:
        """The rows so far, whose cells are numbers or empty; a last line cut short is dropped."""
        if not self.metrics.exists():
            return []
        reader = csv.DictReader(io.StringIO(self.read(self.metrics), newline=""))
        try:
            rows = [row for row in reader if None not in row.values() and row.get("epoch", "").isdigit()]
            for row in rows:
                for cell in filter(None, row.values()):
                    float(cell)
        except (ValueError, TypeError, csv.Error) as error:
            raise DamagedFileError(f"{self.metrics}: is damaged ({error})") from None
        return rows


def data_facts(bundle: Any) -> dict[str, Any]:
    """What predictions need of a ``DataBundle``: its ``DatasetSpec``, and the statistics [dim_out] of targets
    that were standardised (else None), as plain values; and what a continued run compares."""
    statistics = {"target_mean": bundle.target_mean, "target_std": bundle.target_std}
    return (
        dataclasses.asdict(bundle.spec)
        | {"identity": bundle.identity, "sizes": {name: len(part) for name, part in bundle.splits.items()}}
        | {name: None if value is None else value.flatten().tolist() for name, value in statistics.items()}
    )


def seed_and_fold(cfg: CfgNode) -> dict[str, int]:
    """Which run of its config it is, as in ``result.json``."""
    return {"seed": cfg.seed} | ({"fold": cfg.dataset.split_index} if cfg.run_multiple_splits else {})


def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries that decide the numbers."""
    from graphgps_pearl import __version__

    found = {"python": platform.python_version(), "graphgps_pearl": __version__}
    return found | {name: version(name) for name in _LIBRARIES}


def machine() -> dict[str, str]:
    """Processor, number of cores and, where torch is loaded and sees one, the GPU; the command."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(
            (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), processor
        )
    found = f"{processor}, {os.cpu_count()} cores"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found += f", {torch.cuda.get_device_name()}"
    return {"hardware": found, "command": command_line()}
