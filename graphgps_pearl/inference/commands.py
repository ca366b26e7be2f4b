"""The commands ``predict``, ``describe``, ``encode`` and ``export``.

Arguments and input files are checked before torch is imported. Results go to the file named with ``-o`` or to
standard output, everything said about them to standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgps_pearl.command import run_command
from graphgps_pearl.config import shipped
from graphgps_pearl.errors import UserError
from graphgps_pearl.escaping import printable
from graphgps_pearl.inference.molecule_files import MoleculeTable, read_molecules
from graphgps_pearl.runs.model_folder import is_config, shipped_names
from graphgps_pearl.terminal import columns, wrap

if TYPE_CHECKING:
    from graphgps_pearl.inference.model import Model

_MODEL = (
    "a shipped model ({}), a model folder, a run folder such as results/quickstart/0, or a checkpoint in it"
)
_MOLECULES = "molecules: .smi, .csv or .tsv (also .gz), or - for standard input"


class BadRowsError(UserError):
    """Some molecules have no result; the others have theirs. Exit code 1."""

    code = 1


def predict(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``predict MODEL molecules.smi|csv|- [-o out.csv]``."""
    parser = _parser(prog, "Predict the targets of molecules with a trained model.", _MOLECULES)
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV to write; standard output if left out")
    parser.add_argument(
        "--tables",
        type=_positive,
        metavar="T",
        help="tables of random samples to average over (R-PEARL): 4 unless given; 1 = as in training",
    )
    args = parser.parse_args(argv)

    def work() -> None:
        from graphgps_pearl.inference.output import PredictionWriter

        table = read_molecules(args.molecules, args.smiles_column)
        with PredictionWriter(args.output, args.molecules) as writer:
            model = _load(args.model, args.device)
            _predict_rows(model, table, writer, args.batch_size, args.tables)

    return run_command(work)


def _predict_rows(
    model: Model, table: MoleculeTable, writer: Any, batch_size: int, tables: int | None
) -> None:
    """Predict in windows, so that memory does not grow with the file."""
    window = 16 * batch_size
    bad = 0
    began = time.perf_counter()
    with _progress(len(table), "predicting") as bar:
        for start in range(0, len(table), window):
            smiles = table.smiles[start : start + window]
            result = model.predict(smiles, tables=tables, batch_size=batch_size, notify=bar.update)
            problems = {r - start: why for r, why in table.problems.items() if start <= r < start + window}
            errors = {**result.errors, **problems}
            if start == 0:
                writer.header(table.columns, result.columns, with_spread=result.spread is not None)
            for i, row in enumerate(table.rows[start : start + window]):
                spread = None if result.spread is None else result.spread[i]
                writer.row(row, result.values[i], spread, errors.get(i, ""))
            bad += len(errors)
    seconds = time.perf_counter() - began
    rate = f"{len(table) / seconds:,.0f} molecules per second"
    _say(f"{rate} ({len(table):,} in {seconds:.1f} s on {model.device})")
    _account(len(table), bad, "predicted", f"the column {writer.error_column!r} says why")


def describe(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``describe CONFIG|MODEL [KEY VALUE ...]``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="A model at a glance: data, encoders and their costs, layers, parameters, memory, time.",
    )
    parser.add_argument("model", metavar="CONFIG|MODEL", help="a config file, or " + _models())
    parser.add_argument("--no-timing", action="store_true", help="leave out what has to be measured")
    parser.add_argument("overrides", nargs="*", metavar="KEY VALUE", help="config keys to set (CONFIG only)")
    args = parser.parse_intermixed_args(argv)

    def work() -> None:
        model = _load_any(args.model, tuple(args.overrides), device="cpu")
        from graphgps_pearl.inference.describe import describe_model

        for line in describe_model(model, timing=not args.no_timing).splitlines():
            print(wrap(printable(line), columns(), indent=16))

    return run_command(work)


def encode(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``encode CONFIG|MODEL molecules.smi -o encodings.npz --draw out.png``."""
    parser = _parser(prog, "Write or draw the positional encodings of molecules.", _MOLECULES, configs=True)
    parser.add_argument("-o", "--output", metavar="FILE.npz", help="encodings to write")
    parser.add_argument(
        "--draw", metavar="FILE.png", help="draw molecules with their atoms coloured (at most 12 of them)"
    )
    parser.add_argument("--encoding", metavar="NAME", help="which encoding to draw, if there are several")
    parser.add_argument(
        "--component",
        metavar="N",
        type=_from_zero,
        help="column to draw; left out, the direction in which the atoms differ most",
    )
    args = parser.parse_args(argv)
    if not args.output and not args.draw:
        parser.error("nothing to do: give -o FILE.npz, --draw FILE.png or both")

    def work() -> None:
        from graphgps_pearl.inference.output import check_ending

        check_ending(args.output, ".npz")
        check_ending(args.draw, ".png")
        table = read_molecules(args.molecules, args.smiles_column)
        model = _load_any(args.model, (), args.device)
        if not model.trained:
            _say(f"{args.model} is a config: its encodings are untrained (seed {model.cfg.seed})")
        from graphgps_pearl.inference.draw import draw_encodings
        from graphgps_pearl.inference.output import write_encodings

        with _progress(len(table), "encoding") as bar:
            # Of a row that does not fit the header it is not known which cell is the SMILES.
            smiles = ["" if row in table.problems else text for row, text in enumerate(table.smiles)]
            found = model.encode(smiles, batch_size=args.batch_size, notify=bar.update)
            found.smiles, found.errors = list(table.smiles), {**found.errors, **table.problems}
        if args.output:
            write_encodings(found, Path(args.output))
        if args.draw:
            draw_encodings(found, Path(args.draw), args.encoding, args.component)
        _account(len(table), len(found.errors), "encoded", _first(found.errors))

    return run_command(work)


def export(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``export RUN -o FOLDER``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Make a model folder (weights, config, statistics, card) that needs no training data.",
    )
    parser.add_argument(
        "run", metavar="RUN", help="a run folder such as results/quickstart/0, or a checkpoint"
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="the model folder to make")
    parser.add_argument("--notes", metavar="FILE.md", help="limits to add to the card, in your own words")
    parser.add_argument("--overwrite", action="store_true", help="replace a model folder of that name")
    args = parser.parse_args(argv)

    def work() -> None:
        from dataclasses import replace

        from graphgps_pearl.inference.featurise import reads_smiles
        from graphgps_pearl.inference.folder import write_model

        notes = _read_text(args.notes) if args.notes else ""
        model = _load(args.run, "cpu")
        folder = Path(args.output)
        if folder.name in ("", ".."):  # the folder it is started in, or one above
            folder = folder.resolve()
        model.facts = replace(model.facts, name=folder.name)
        write_model(model, folder, overwrite=args.overwrite, notes=notes)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{folder}: {size / 1e6:.1f} MB; read {folder / 'README.md'}, then")
        if reads_smiles(model.cfg, model.facts):
            print(f"graphgps-pearl predict {folder} molecules.smi")
        else:
            print(f"graphgps_pearl.load({str(folder)!r}).predict_graphs([...]) in Python")

    return run_command(work)


def _parser(
    prog: str | None, description: str, molecules: str, configs: bool = False
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog="Exit code 0: all rows done; 1: some could not be, see their reasons; 2: nothing was done.",
    )
    name = "CONFIG|MODEL" if configs else "MODEL"
    parser.add_argument("model", metavar=name, help=("a config file, or " if configs else "") + _models())
    parser.add_argument("molecules", metavar="MOLECULES", help=molecules)
    parser.add_argument("--smiles-column", metavar="NAME", help="column of the SMILES; 'smiles' unless given")
    parser.add_argument(
        "--batch-size",
        type=_positive,
        default=256,
        metavar="N",
        help="most molecules in a batch (default: 256)",
    )
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, ...; a GPU if there is one unless given")
    return parser


def _models() -> str:
    return _MODEL.format(", ".join(shipped_names()))


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _from_zero(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None


def _load(path: str, device: str | None) -> Model:
    from graphgps_pearl.inference.loading import load

    return load(path, device)


def _load_any(path: str, overrides: tuple[str, ...], device: str | None) -> Model:
    """A model, or the untrained model of a config."""
    if is_config(Path(path)):
        from graphgps_pearl import config

        config.load(path, overrides)  # mistakes are told before torch is imported
        from graphgps_pearl.inference.loading import untrained

        return untrained(path, overrides, device)
    if overrides:
        copied = f"graphgps-pearl configs {path} --copy, then name {path}.yaml"
        alike = f"; for the config of that name: {copied}" if path in shipped.names() else ""
        raise UserError(f"{path}: KEY VALUE goes with a config; a trained model is as it is{alike}")
    return _load(path, device)


def _progress(total: int, what: str) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit="molecule", disable=None, leave=False)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _account(total: int, bad: int, done: str, why: str) -> None:
    """The last line: how many rows were done, how many could not be and why."""
    if bad:
        raise BadRowsError(f"{total - bad:,} of {total:,} molecules {done}, {bad:,} could not be: {why}")
    _say(f"{total:,} of {total:,} molecules {done}")


def _first(errors: dict[int, str]) -> str:
    return next((f"the first is row {row + 1}: {why}" for row, why in sorted(errors.items())), "")
