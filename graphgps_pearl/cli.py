"""The command line. Nothing heavy is imported before the arguments and the config are known to be right."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from graphgps_pearl import __version__
from graphgps_pearl.command import run_command
from graphgps_pearl.errors import UserError
from graphgps_pearl.processes import say_when_stopped
from graphgps_pearl.terminal import columns

if TYPE_CHECKING:
    from yacs.config import CfgNode


def train_parser(prog: str | None = None) -> argparse.ArgumentParser:
    """Arguments of ``main.py``, as GraphGPS users know them."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Train a graph transformer with positional encodings, as a config file says.",
        epilog="Results go to <out_dir>/<config>[-name_tag]/<seed>/. The same command continues an "
        "interrupted run and reports a finished one. Keys and defaults: docs/configuration.md.",
    )
    parser.add_argument(
        "--cfg", metavar="FILE", required=True, help="config file, or the name of a shipped one: zinc-bpearl"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=_positive, default=1, help="train N seeds: seed, seed + 1, ..."
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="train finished or changed runs again, from the start"
    )
    parser.add_argument(
        "--mark_done", action="store_true", help="rename the config to FILE_done when all is trained"
    )
    parser.add_argument("--version", action="version", version=f"graphgps_pearl {__version__}")
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY VALUE", help="config keys to set, such as optim.base_lr 1e-4"
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def train(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``python main.py --cfg FILE [--repeat N] [--mark_done] [--overwrite] [KEY VALUE ...]``."""
    args = train_parser(prog).parse_intermixed_args(argv)

    def work() -> None:
        from graphgps_pearl import config
        from graphgps_pearl.config import shipped

        file = config.find(args.cfg)
        cfg = config.load(file, args.overrides)
        if args.mark_done and file.parent == shipped.folder() and file != Path(args.cfg):
            raise UserError(f"--mark_done: {args.cfg} comes with the package; it goes with files of your own")
        _train_all(cfg, file, args.repeat, args.overwrite)
        if args.mark_done:
            _mark_done(file)

    def continuable() -> None:
        with say_when_stopped(lambda: "the same command continues"):
            work()

    return run_command(continuable)


def _mark_done(file: Path) -> None:
    from graphgps_pearl.training.processes import rank

    if rank() == 0:
        try:
            file.rename(f"{file}_done")
        except OSError as error:
            raise UserError(f"--mark_done: {file} cannot be renamed ({error.strerror})") from error


def _train_all(cfg: CfgNode, cfg_file: Path, repeat: int, overwrite: bool) -> None:
    """Train every seed (or every split of ``run_multiple_splits``), then aggregate."""
    from graphgps_pearl import config
    from graphgps_pearl.runs.folder import RunFolder, config_folder

    out_dir, runs = Path(cfg.out_dir), config.runs(cfg, repeat)
    folder = config_folder(out_dir, cfg_file, cfg.name_tag)
    if os.environ.get("RANK", "0") == "0":  # before the imports, which take seconds
        print(f"{folder.name}: {len(runs)} run(s), results in {folder}", flush=True)
    from graphgps_pearl.registry import register
    from graphgps_pearl.report.aggregate import aggregate_rows, describe_folds, describe_run, write_aggregate
    from graphgps_pearl.report.pictures import annotate
    from graphgps_pearl.report.table import text_table
    from graphgps_pearl.training.processes import rank
    from graphgps_pearl.training.run import run

    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # after its import, which sets it
    register()
    first = rank() == 0  # of the processes that torchrun started; it alone reports
    kind = "fold" if cfg.run_multiple_splits else "seed"
    for i, (run_id, run_cfg) in enumerate(runs, start=1):
        run_folder = RunFolder(folder / str(run_id))
        if first and len(runs) > 1:
            print(f"{kind} {i} of {len(runs)}: {kind} {run_id}, {run_folder.path}", flush=True)
        before = _modified(run_folder.result)
        result = run(run_cfg, run_folder, overwrite=overwrite)
        if not first:
            continue
        if _modified(run_folder.result) != before:  # else it was finished, and its pictures are there
            annotate(run_folder.path)
        print(f"\n{describe_run(result)}\n")
    if not first:
        return
    summary = write_aggregate(folder)
    if summary is not None and len(summary["seeds"]) > 1:
        print(f"{len(summary['seeds'])} runs of {summary['config']}, mean ± standard deviation\n")
        print(text_table(*aggregate_rows(summary), columns()) + "\n" + describe_folds(summary))
    print(f"results: {folder}\ncurves:  tensorboard --logdir {out_dir} --host localhost")


def _modified(file: Path) -> int | None:
    return file.stat().st_mtime_ns if file.exists() else None


def configs(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``configs [NAME [--copy [FILE]]]``: list the shipped configs, show one, or copy it to edit."""
    parser = argparse.ArgumentParser(prog=prog, description="List, show or copy the configs that come along.")
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this one, with its base written out")
    parser.add_argument(
        "--copy", nargs="?", const="", metavar="FILE", help="write it to FILE (NAME.yaml) for you to edit"
    )
    args = parser.parse_args(argv)

    def work() -> None:
        from graphgps_pearl.config import shipped

        if args.name is None:
            if args.copy is not None:
                raise UserError("--copy: say which config, such as: configs zinc-bpearl --copy")
            names = shipped.names()
            width = max(map(len, names)) + 2
            for name in names:
                print(f"{name:<{width}}{shipped.summary(name)}"[: columns()])
        elif args.copy is None:
            print(shipped.whole(shipped.known(args.name)), end="")
        else:
            _write_new(Path(args.copy or f"{args.name}.yaml"), shipped.whole(shipped.known(args.name)))

    return run_command(work)


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UserError(f"{file}: exists already; name another file: --copy FILE") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error.strerror})") from None
    print(f"{file}: edit it, then: graphgps-pearl train --cfg {file}")


#: What ``graphgps-pearl`` (``python -m graphgps_pearl``) can do: where the command lives, and a line of help.
#: A command is a function of (argv, prog) that returns an exit code and imports nothing heavy before it must.
COMMANDS = {
    "train": ("graphgps_pearl.cli:train", "train a config, the same as main.py"),
    "configs": ("graphgps_pearl.cli:configs", "list, show or copy the configs that come along"),
    "compare": ("graphgps_pearl.experiments.compare:compare", "train configs side by side and compare them"),
    "report": ("graphgps_pearl.report.command:report", "compare the runs in a results folder"),
    "baseline": (
        "graphgps_pearl.experiments.baseline:baseline",
        "fit molecular fingerprints with LightGBM on a config's splits",
    ),
    "search": ("graphgps_pearl.experiments.search:search", "search for the best values of config keys"),
    "evaluate-samples": (
        "graphgps_pearl.experiments.samples:evaluate_samples",
        "evaluate R-PEARL with other numbers of samples",
    ),
    "predict": ("graphgps_pearl.inference.commands:predict", "predict molecules with a trained model"),
    "describe": ("graphgps_pearl.inference.commands:describe", "a config or model at a glance"),
    "encode": ("graphgps_pearl.inference.commands:encode", "write and draw positional encodings"),
    "encode-graph": (
        "graphgps_pearl.inference.encode_graph:encode_graph",
        "write R-PEARL's encoding of one large graph",
    ),
    "export": ("graphgps_pearl.inference.commands:export", "make a model folder of a run"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """``graphgps-pearl COMMAND ...``."""
    words = list(sys.argv[1:] if argv is None else argv)
    prog = "python -m graphgps_pearl" if Path(sys.argv[0]).name == "__main__.py" else "graphgps-pearl"
    if not words or words[0] not in COMMANDS:
        listing = "\n".join(f"  {name:<17} {text}" for name, (_, text) in COMMANDS.items())
        parser = argparse.ArgumentParser(
            prog=prog,
            description="PEARL positional encodings for graph transformers: train, compare, predict.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=f"commands:\n{listing}\n\n{prog} COMMAND --help tells more.",
        )
        parser.add_argument("--version", action="version", version=f"graphgps_pearl {__version__}")
        parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
        parser.parse_args(words[:1] or ["--help"])
    module, _, function = COMMANDS[words[0]][0].partition(":")
    failed = run_command(lambda: import_module(module))  # which says what an install without [train] lacks
    return failed or getattr(sys.modules[module], function)(words[1:], prog=f"{prog} {words[0]}")
