"""``compare`` trains configs side by side, each run in a process of its own.

A run that fails is noted and does not take the others down; started again, the comparison continues
unfinished runs and leaves finished ones alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.command import run_command
from graphgps_pearl.errors import UserError
from graphgps_pearl.experiments.jobs import Ending, Job, do, in_turn
from graphgps_pearl.report.command import comparison_parser, show
from graphgps_pearl.runs.folder import config_folder


def plan(files: Sequence[Path], seeds: int, words: Sequence[str]) -> list[Job]:
    """Every seed of every config, seed by seed, so that an early end leaves comparable runs."""
    configs = {file: config.load(file, words) for file in files}
    folds = [file.name for file, cfg in configs.items() if cfg.run_multiple_splits]
    if seeds > 1 and folds:
        raise UserError(
            f"--seeds {seeds}: {folds[0]} has a run for each of run_multiple_splits already; leave --seeds "
            "out, or set run_multiple_splits []"
        )
    jobs = []
    for i in range(seeds):
        for file, cfg in configs.items():
            seed = cfg.seed + i
            folder = config_folder(Path(cfg.out_dir), file, cfg.name_tag) / str(seed)
            jobs.append(Job(file, seed, tuple(words), folder))
    return jobs


def with_encoders(base: Path, encoders: Sequence[str], words: Sequence[str]) -> list[tuple[Path, list[str]]]:
    """(config file, words over it) that puts each encoder into ``base``.

    Where a config of the same dataset, network and that encoder stands beside ``base`` (``zinc-rwse.yaml``
    beside ``zinc-bpearl.yaml``), it is used, since it has the encoder's settings; else ``base`` with the
    encoder's name changed, and its defaults.
    """
    cfg = config.load(base, words)
    dataset = next(
        (base.stem[:i] for i in range(len(base.stem), 0, -1) if _is_dataset(base, base.stem[:i])), ""
    )
    data_encoder, _, own = cfg.dataset.node_encoder_name.partition("+")
    chosen = []
    for encoder in encoders:
        beside = [base.with_name(f"{dataset}-{encoder.lower()}{end}.yaml") for end in ("", "-8s")]
        if encoder == (own or "none"):
            beside = [base]
        file = next((f for f in beside if dataset and f.is_file() and _same_network(f, cfg, words)), None)
        if file is not None:
            chosen.append((file, list(words)))
            continue
        name = data_encoder if encoder == "none" else f"{data_encoder}+{encoder}"
        chosen.append((base, [*words, "dataset.node_encoder_name", name, "name_tag", encoder]))
    return chosen


def _same_network(file: Path, cfg: CfgNode, words: Sequence[str]) -> bool:
    other = config.load(file, words)
    return all(other[group] == cfg[group] for group in ("model", "gnn", "gt"))


def _is_dataset(base: Path, prefix: str) -> bool:
    return base.stem.startswith(f"{prefix}-") and base.with_name(f"{prefix}-none.yaml").is_file()


def compare(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``compare FILE... --seeds N`` or ``compare --base FILE --encoders A B ... [KEY VALUE ...]``."""
    parser = comparison_parser(prog, "Train configs side by side and compare them.")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="configs (files or names), then KEY VALUE pairs for all"
    )
    parser.add_argument("--base", metavar="FILE", help="config into which --encoders are put")
    parser.add_argument(
        "--encoders", nargs="+", metavar="NAME", default=[], help="none, RWSE, BPEARL, RPEARL+BPEARL, ..."
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each config (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at the same time (default: 1)")
    args = parser.parse_intermixed_args(argv)

    def work() -> None:
        jobs = _jobs(args)
        failed = 0
        for i, (job, ending) in enumerate(_endings(jobs, args.jobs), start=1):
            failed += ending.state == "failed"
            print(f"[{i}/{len(jobs)}] {job.name}: {ending}", flush=True)
        names = list(dict.fromkeys(job.folder.parent.name for job in jobs))
        show(jobs[0].folder.parent.parent, names, args.baseline, args.split)
        if failed:
            raise UserError(f"{failed} of {len(jobs)} runs failed (see above); the same command retries them")

    return run_command(work)


def _endings(jobs: Sequence[Job], at_once: int) -> Iterator[tuple[Job, Ending]]:
    return zip(jobs, in_turn(partial(do, alone=at_once < 2), jobs, at_once), strict=True)


def _is_file(word: str) -> bool:
    return word.endswith((".yaml", ".yml"))


def _before_keys(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names (of configs, of encoders) up to the first config key, and the rest."""
    keys = config.defaults()
    names = list(takewhile(lambda word: _is_file(word) or not ("." in word or word in keys), words))
    return names, list(words[len(names) :])


def _jobs(args: argparse.Namespace) -> list[Job]:
    named, words = _before_keys(args.files)
    files = [config.find(word) for word in [*named, *filter(_is_file, words)]]
    words = [word for word in words if not _is_file(word)]
    encoders, more = _before_keys(args.encoders)  # KEY VALUE words may stand right behind the encoders
    words += more
    if bool(args.base) != bool(encoders) or bool(args.base) == bool(files):
        raise UserError("give config files, or --base FILE with --encoders NAME ...")
    if args.seeds < 1:
        raise UserError(f"--seeds {args.seeds}: at least one run of each config")
    if files:
        return plan(files, args.seeds, words)
    chosen = with_encoders(config.find(args.base), encoders, words)
    for encoder, (file, _) in zip(encoders, chosen, strict=True):
        print(f"{encoder}: {file}", flush=True)
    each = [plan([file], args.seeds, over) for file, over in chosen]
    return [job for same_seed in zip(*each, strict=True) for job in same_seed]
