"""``compare`` trains configs side by side, each run in a process of its own.

A run that fails is noted and does not take the others down; started again, the comparison continues
unfinished runs and leaves finished ones alone.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.command import run_command
from graphgps_pearl.errors import UserError
from graphgps_pearl.experiments.check import check, is_finished, require_same
from graphgps_pearl.experiments.jobs import Ending, Job, how_to_continue, run_jobs
from graphgps_pearl.experiments.live import Live
from graphgps_pearl.processes import say_when_stopped
from graphgps_pearl.report.command import comparison_parser, show
from graphgps_pearl.runs.folder import config_folder

#: What a config's name may say after the encoder: which eigenvectors, which subgraphs.
ENDINGS = ("-8s", "-cycles", "-cliques")


def plan(files: Sequence[Path], seeds: int, overrides: Sequence[str]) -> list[Job]:
    """Every seed of every config, seed by seed, so that an early end leaves comparable runs."""
    configs = {file: config.load(file, overrides) for file in files}
    folded = [file.name for file, cfg in configs.items() if cfg.run_multiple_splits]
    if seeds > 1 and folded:
        raise UserError(
            f"--seeds {seeds}: {folded[0]} has a run for each of run_multiple_splits already; leave --seeds "
            "out, or set run_multiple_splits []"
        )
    jobs = []
    for i in range(seeds):
        for file, cfg in configs.items():
            seed = cfg.seed + i
            folder = config_folder(Path(cfg.out_dir), file, cfg.name_tag) / str(seed)
            folds = tuple(cfg.run_multiple_splits)
            jobs.append(Job(file, seed, tuple(overrides), folder, cfg.optim.max_epoch, folds))
    return jobs


def with_encoders(
    base: Path, encoders: Sequence[str], overrides: Sequence[str]
) -> list[tuple[Path, list[str]]]:
    """(config file, overrides over it) that puts each encoder into ``base``.

    Where a config of the same dataset, network and that encoder is in the folder of ``base``
    (``zinc-rwse.yaml`` for ``zinc-bpearl.yaml``), it is used, since it has the encoder's settings; else
    ``base`` with the encoder's name changed, and its defaults.
    """
    cfg = config.load(base, overrides)
    dataset = next(
        (base.stem[:i] for i in range(len(base.stem), 0, -1) if _is_dataset(base, base.stem[:i])), ""
    )
    data_encoder, _, own = cfg.dataset.node_encoder_name.partition("+")
    chosen = []
    for encoder in encoders:
        candidates = [base.with_name(f"{dataset}-{encoder.lower()}{end}.yaml") for end in ("", *ENDINGS)]
        if encoder == (own or "none"):
            candidates = [base]
        file = next(
            (f for f in candidates if dataset and f.is_file() and _same_network(f, cfg, overrides)), None
        )
        if file is not None:
            chosen.append((file, list(overrides)))
            continue
        name = data_encoder if encoder == "none" else f"{data_encoder}+{encoder}"
        tag = f"{encoder}-{cfg.name_tag}" if cfg.name_tag else encoder
        chosen.append((base, [*overrides, "dataset.node_encoder_name", name, "name_tag", tag]))
    return chosen


def _same_network(file: Path, cfg: CfgNode, overrides: Sequence[str]) -> bool:
    other = config.load(file, overrides)
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
        names = list(dict.fromkeys(job.folder.parent.name for job in jobs))
        out_dir = jobs[0].folder.parent.parent
        _require_comparable(jobs)
        _require_shown(jobs, [*names, *_fingerprints(out_dir, names)], args.baseline, args.split)
        failed = _train(jobs, args.jobs)
        # Where all have failed there is nothing to show, and why is said above.
        with contextlib.suppress(*[UserError] if failed else []):
            show(out_dir, [*names, *_fingerprints(out_dir, names)], args.baseline, args.split)
        if failed:
            raise UserError(f"{failed} of {len(jobs)} runs failed (see above); the same command retries them")

    return run_command(work)


def _require_comparable(jobs: Sequence[Job]) -> None:
    """Every run has a folder of its own, and all are in one out_dir."""
    owners: dict[Path, Job] = {}
    for job in jobs:
        other = owners.setdefault(job.folder, job)
        if other is not job:
            which = f"{other.file} and {job.file}" if other.file != job.file else f"{job.file}, given twice,"
            raise UserError(f"{which} would both train in {job.folder}: leave one out, or rename its file")
        if job.folder.parent.parent != jobs[0].folder.parent.parent:
            raise UserError(
                f"out_dir: {job.file} has {job.folder.parent.parent} and {jobs[0].file} has "
                f"{jobs[0].folder.parent.parent}; give out_dir DIR for all of them"
            )


def _require_shown(
    jobs: Sequence[Job], names: Sequence[str], baseline: str | None, split: str | None
) -> None:
    """What the table is to be made with is known before the first run, not after the last."""
    if baseline is not None and baseline not in names:
        raise UserError(f"--baseline {baseline}: is not compared here; there are {', '.join(names)}")
    if split is None:
        return
    from graphgps_pearl.data import declared

    splits = dict.fromkeys(s for job in jobs for s in declared(config.load(job.file, job.overrides)).splits)
    if split not in splits:
        raise UserError(f"--split {split}: there is no such split; there are {', '.join(splits)}")


def _fingerprints(out_dir: Path, names: Sequence[str]) -> list[str]:
    """Baselines of these configs that ``baseline`` has fitted."""
    return [row for name in names for row in (f"{name}-ecfp", f"{name}-ecfp-all") if (out_dir / row).is_dir()]


def _train(jobs: Sequence[Job], at_once: int) -> int:
    """Check everything, then train what is not finished; how many failed."""
    configs = {job.folder.parent: config.load(job.file, job.overrides) for job in jobs}
    print(f"checking {len(configs)} config(s), then {len(jobs)} run(s)", flush=True)
    selections = {folder: check(cfg) for folder, cfg in configs.items()}
    texts = {job: _texts(job, configs[job.folder.parent]) for job in jobs}
    for of_job in texts.values():
        for folder, text in of_job.items():
            require_same(folder, text)
    live = Live(len(jobs), lambda job: selections[job.folder.parent], planned=jobs, at_once=at_once)
    endings: dict[Job, Ending] = {}

    def ended(job: Job, ending: Ending) -> None:
        endings[job] = ending
        live.ended(job, f"done, {live.summary(job)}" if ending.state == "done" else str(ending))

    def unfinished() -> Iterator[Job]:
        for job in jobs:
            if is_finished(texts[job]):
                ended(job, Ending("done"))
            else:
                yield job

    out_dir = jobs[0].folder.parent.parent
    with say_when_stopped(lambda: how_to_continue(_done(jobs, endings, live), out_dir)):
        run_jobs(unfinished(), at_once, ended, observer=live)
    return sum(ending.state == "failed" for ending in endings.values())


def _texts(job: Job, cfg: CfgNode) -> dict[Path, str]:
    """The folders of a job's runs, and the config that each of them is trained with."""
    each = config.runs(config.override(cfg, ["seed", job.seed]))
    return {job.folder.with_name(str(name)): config.dump(run) for name, run in each}


def _done(jobs: Sequence[Job], endings: Mapping[Job, Ending], live: Live) -> str:
    """What a comparison that was stopped has come to."""
    begun = [f"{job.name} at epoch {p.epochs}" for job in live.running if (p := live.refreshed(job)).epochs]
    done = sum(ending.state == "done" for ending in endings.values())
    saved = f", saved: {'; '.join(begun)}" if begun else ""
    return f"{done} of {len(jobs)} runs are done{saved}"


def _is_file(word: str) -> bool:
    return word.endswith((".yaml", ".yml"))


def _before_keys(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names (of configs, of encoders) up to the first config key, and the rest."""
    keys = config.defaults()
    names = list(takewhile(lambda word: _is_file(word) or not ("." in word or word in keys), overrides))
    return names, list(overrides[len(names) :])


def _jobs(args: argparse.Namespace) -> list[Job]:
    named, overrides = _before_keys(args.files)
    files = [config.find(word) for word in [*named, *filter(_is_file, overrides)]]
    overrides = [word for word in overrides if not _is_file(word)]
    encoders, more = _before_keys(args.encoders)  # KEY VALUE overrides may stand right behind the encoders
    overrides += more
    if bool(args.base) != bool(encoders) or bool(args.base) == bool(files):
        raise UserError("give config files, or --base FILE with --encoders NAME ...")
    if args.seeds < 1 or args.jobs < 1:
        raise UserError(f"--seeds {args.seeds} --jobs {args.jobs}: expected whole numbers from 1 up")
    if files:
        return plan(files, args.seeds, overrides)
    chosen = with_encoders(config.find(args.base), encoders, overrides)
    for encoder, (file, _) in zip(encoders, chosen, strict=True):
        print(f"{encoder}: with the settings of {config.shown(file)}", flush=True)
    each = [plan([file], args.seeds, over) for file, over in chosen]
    return [job for same_seed in zip(*each, strict=True) for job in same_seed]
