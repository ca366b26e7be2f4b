"""``search`` looks for the best values of config keys with Optuna; the study is a file that can be continued.

Every trial is an ordinary run, in ``<out_dir>/search-<study>/<config>-trial-<number>/<seed>``. The validation
metric decides, and no other split is read. A trial whose validation curve stays behind the median of the
others is ended early, unless ``optim.max_epoch`` is searched over; one above the parameter budget ends before
its data is loaded.
"""

from __future__ import annotations

import argparse
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.command import run_command
from graphgps_pearl.config.schema import put
from graphgps_pearl.errors import ConfigError, UserError
from graphgps_pearl.experiments.check import check
from graphgps_pearl.experiments.jobs import Ending, Job, how_to_continue, run_jobs
from graphgps_pearl.experiments.live import Live, Selection, rows_so_far
from graphgps_pearl.experiments.search_space import Dimension, parse_space
from graphgps_pearl.files import exclusive
from graphgps_pearl.processes import say_when_stopped
from graphgps_pearl.runs.folder import HARMLESS_KEYS, RunFolder, config_folder, first_change, settings

if TYPE_CHECKING:
    from optuna import Study, Trial

_FAILURES_IN_A_ROW = 3
_LENGTH = "optim.max_epoch"
_OVER_BUDGET = "train.max_params:"
_BUSY_RUN = "is being trained by another process"


def search(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``search CONFIG --keys KEY=VALUES ... [--trials N] [KEY VALUE ...]``."""
    args = read_arguments(argv, prog)

    def work() -> None:
        file = config.find(args.config)
        cfg = config.load(file, args.overrides)
        space = parse_space(args.keys, cfg)
        if args.trials < 1 or args.jobs < 1:
            raise UserError(f"--trials {args.trials} --jobs {args.jobs}: expected whole numbers from 1 up")
        if cfg.run_multiple_splits:
            raise UserError(
                f"{args.config}: run_multiple_splits makes several runs of a trial; set it to [], and "
                "dataset.split_index to one of them"
            )
        print(f"checking {args.config}, then {args.trials} trials", flush=True)
        _optuna()
        selection = check(cfg, budget=False)  # trials over the budget are skipped
        name = args.study or config_folder(Path(), file, cfg.name_tag).name
        folder = Path(cfg.out_dir) / f"search-{name}"
        storage = args.storage or folder / "study.db"
        busy = f"{storage} is being searched by another process; wait for it, or give --storage FILE"
        with exclusive(storage.with_name(f".{storage.name}.lock"), busy):
            found = Search(file, tuple(args.overrides), cfg, space, folder, storage, name, selection)
            found.run(args.trials, args.jobs)
            print(found.describe())

    return run_command(work)


def read_arguments(argv: Sequence[str] | None, prog: str | None = None) -> argparse.Namespace:
    """The arguments of ``search``; ``KEY VALUE`` overrides may stand anywhere, behind ``--keys`` too."""
    args = _parser(prog).parse_intermixed_args(argv)
    end = next((i for i, word in enumerate(args.keys) if "=" not in word), 0) or len(args.keys)
    args.overrides += args.keys[end:]
    args.keys = args.keys[:end]
    return args


def _parser(prog: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Search for the best values of config keys, by the validation metric.",
        epilog="The same command continues an interrupted search; a larger --trials goes on with a finished "
        "one. KEY=A,B,C chooses, KEY=LOW:HIGH is a range, LOW:HIGH:STEP one in steps, LOW:HIGH:log a "
        "logarithmic one.",
    )
    parser.add_argument("config", metavar="CONFIG", help="config (file or name) to start from")
    parser.add_argument("overrides", nargs="*", metavar="KEY VALUE", help="config keys to set in all trials")
    parser.add_argument(
        "--keys",
        nargs="+",
        required=True,
        metavar="KEY=VALUES",
        help="what to vary, such as posenc_BPEARL.num_layers=3,5,7 optim.base_lr=1e-4:1e-2:log",
    )
    parser.add_argument("--trials", type=int, default=20, metavar="N", help="trials in all (default 20)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="trials at the same time")
    parser.add_argument(
        "--storage", type=Path, metavar="FILE", help="SQLite file (default <out_dir>/search-<study>/study.db)"
    )
    parser.add_argument("--study", metavar="NAME", help="name of the study (default: the config's)")
    return parser


def _optuna() -> ModuleType:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise UserError(
            f"search needs a package that is not installed ({error.name}): pip install 'optuna>=5,<6'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class Search:
    """A study and how its trials are run.

    Args:
        file: the config that trials start from.
        overrides: set over it in every trial.
        cfg: both together.
        space: what is varied.
        folder: where the trials' run folders go.
        storage: the SQLite file.
        name: of the study in it.
        selection: what a trial's best epoch is chosen by.
    """

    def __init__(
        self,
        file: Path,
        overrides: tuple[str, ...],
        cfg: CfgNode,
        space: tuple[Dimension, ...],
        folder: Path,
        storage: Path,
        name: str,
        selection: Selection,
    ) -> None:
        self.file, self.overrides, self.cfg, self.space, self.folder = file, overrides, cfg, space, folder
        self.storage, self.selection = storage, selection
        self.study = self._open(name)
        self.failures = 0  # in a row
        self.trials: dict[Job, Trial] = {}
        self.watches: dict[Job, Watch] = {}

    def _open(self, name: str) -> Study:
        """The study in the storage, or a new one; an old one must be this very search."""
        optuna = _optuna()
        self.storage.parent.mkdir(parents=True, exist_ok=True)
        warmup = self.cfg.optim.max_epoch // 4  # epochs; earlier curves say little
        pruner: Any = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=warmup)
        if any(d.key == _LENGTH for d in self.space):
            pruner = optuna.pruners.NopPruner()  # at one epoch, schedules of different length are no match
        try:
            study = optuna.create_study(
                storage=f"sqlite:///{self.storage.resolve()}",
                study_name=name,
                direction="maximize" if self.selection.larger_is_better else "minimize",
                pruner=pruner,
                load_if_exists=True,
            )
            # The same seed again would propose the same trials again.
            study.sampler = optuna.samplers.TPESampler(seed=self.cfg.seed + len(study.trials))
            self._require_same(study)
        except UserError:
            raise
        except Exception as error:  # SQLAlchemy's, Alembic's or Optuna's own
            line = str(error).strip().splitlines()[0]
            raise UserError(
                f"{self.storage}: cannot be used as Optuna's storage ({type(error).__name__}: {line}); "
                "give --storage FILE for a new one"
            ) from error
        return study

    def _require_same(self, study: Study) -> None:
        text, keys = config.dump(self.cfg), {d.key: d.text for d in self.space}
        if not study.user_attrs:
            study.set_user_attr("config", text)
            study.set_user_attr("keys", keys)
            return
        old = study.user_attrs
        changed = first_change(settings(old["config"]), settings(text))
        if not changed and old["keys"] != keys:
            changed = "--keys " + " ".join(f"{k}={v}" for k, v in old["keys"].items()) + ", now they differ"
        if changed:
            raise UserError(
                f"{self.storage} holds a search with {changed}: give --study NAME for a search of its own"
            )

    def run(self, trials: int, jobs: int) -> None:
        """Bring the study to so many trials; those that a killed search left are continued first."""
        self._take_up()
        self.live = Live(trials, lambda _: self.selection, at_once=jobs, done=len(self._counted()))

        def then() -> str:
            return how_to_continue(f"{len(self._counted())} of {trials} trials are done", self.folder)

        with say_when_stopped(then):
            run_jobs(
                self._proposals(trials),
                jobs,
                self._ended,
                watch=lambda job: self.watches[job](),
                observer=self.live,
            )

    def _take_up(self) -> None:
        """Queue the trials that were running when the search ended; they go on in their folders."""
        from optuna.trial import TrialState

        for trial in self.study.get_trials(states=(TrialState.RUNNING,)):
            self.study.enqueue_trial(trial.params, user_attrs={"folder": _folder_number(trial)})
            self.study.tell(trial.number, state=TrialState.FAIL)

    def _counted(self) -> list[Any]:
        """The trials that are over; of one that was interrupted and continued, its last part."""
        last = {_folder_number(t): t for t in self.study.trials}
        return [t for t in last.values() if t.state.is_finished()]

    def _proposals(self, of: int) -> Iterator[Job]:
        """The trials that have to be trained, each proposed when it can begin."""
        for _ in range(len(self._counted()), of):
            trial = self.study.ask({d.key: d.distribution() for d in self.space})
            job = self._job(trial)
            settled = self._settled(trial, job)
            if settled:
                self._tell(trial, job, *settled)
                continue
            self.trials[job], self.watches[job] = trial, Watch(trial, self, job.folder)
            yield job

    def _job(self, trial: Trial) -> Job:
        tag = f"trial-{_folder_number(trial):03d}"
        overrides = [*self.overrides, "out_dir", str(self.folder), "name_tag", tag]
        overrides += [str(word) for pair in trial.params.items() for word in pair]
        path = config_folder(self.folder, self.file, tag) / str(self.cfg.seed)
        epochs = trial.params.get(_LENGTH, self.cfg.optim.max_epoch)
        return Job(self.file, self.cfg.seed, tuple(overrides), path, epochs)

    def _settled(self, trial: Trial, job: Job) -> tuple[float | None, Any, str] | None:
        """(value, state, what is said) of a trial that needs no training, else None."""
        from optuna.trial import TrialState

        twin = self._twin(trial)
        if twin is not None:
            said = f"has the settings of trial {_folder_number(twin)}"
            if twin.state == TrialState.PRUNED:  # its value is that of the epoch where it ended
                return None, TrialState.PRUNED, f"{said}, which was ended early"
            return twin.value, TrialState.COMPLETE, said
        try:
            config.load(self.file, job.overrides)
        except ConfigError as error:
            return None, TrialState.PRUNED, f"not trained, {error}"
        return None

    def _ended(self, job: Job, ending: Ending) -> None:
        self._tell(self.trials[job], job, *self._read(ending, RunFolder(job.folder)))

    def _tell(self, trial: Trial, job: Job, value: float | None, state: Any, said: str) -> None:
        from optuna.trial import TrialState

        trial.set_user_attr("said", said)
        self.study.tell(trial, value, state=state)
        chosen = " ".join(f"{k} {v}" for k, v in trial.params.items())
        self.live.ended(job, f"{said}  ({chosen})")
        self.failures = self.failures + 1 if state == TrialState.FAIL else 0
        if self.failures == _FAILURES_IN_A_ROW:
            raise UserError(f"{self.failures} trials in a row failed; the last: {said}")

    def _twin(self, trial: Trial) -> Any:
        """A trial that was trained with the same settings, to its end or until it was pruned."""
        done = (t for t in self.study.trials if t.value is not None and t.params == trial.params)
        return next(done, None)

    def _read(self, ending: Ending, folder: RunFolder) -> tuple[float | None, Any, str]:
        from optuna.trial import TrialState

        if ending.state == "done":
            result = folder.read_result() or {}
            value = result.get("best", {}).get(result.get("metric"), math.nan)
            if math.isnan(value):
                return None, TrialState.FAIL, "failed, its validation metric is never a number"
            return value, TrialState.COMPLETE, f"{result['metric'].replace('_', ' ')} {value:.4f}"
        if ending.state == "interrupted" or _BUSY_RUN in ending.said:
            raise UserError(f"{folder.path}: {ending}")
        if ending.state == "stopped":
            return None, TrialState.PRUNED, ending.said
        if _OVER_BUDGET in ending.said:
            return None, TrialState.PRUNED, f"over the budget, {ending.said.removeprefix('error: ')}"
        return None, TrialState.FAIL, str(ending)

    def describe(self) -> str:
        """The best trial, as a config and as a command."""
        from optuna.trial import TrialState

        kinds = Counter(trial.state for trial in self._counted())
        numbers = (
            f"{kinds[TrialState.COMPLETE]} trained to the end, {kinds[TrialState.PRUNED]} ended early or not "
            f"begun, {kinds[TrialState.FAIL]} failed"
        )
        if not kinds[TrialState.COMPLETE]:
            return f"no trial was trained to its end ({numbers}); each line above says why"
        best = self.study.best_trial
        overrides = [*self.overrides, *(str(word) for pair in best.params.items() for word in pair)]
        tree = CfgNode()
        for key, text in zip(overrides[::2], overrides[1::2], strict=True):
            name = config.RENAMED.get(key, key)
            if name not in HARMLESS_KEYS:
                put(tree, name, config.read(name, text))
        command = shlex.join(["graphgps-pearl", "train", "--cfg", config.shown(self.file), *overrides])
        return (
            f"\nbest: trial {_folder_number(best)}, {self.selection.label} {best.value:.4f} "
            f"({numbers})\n\n"
            f"as a config beside {self.file.name}:\n\nbase: {self.file.name}\n{config.dump(tree)}\n"
            f"as overrides:\n\n{command}\n\n"
            f"study: {self.storage}\ncurves: tensorboard --logdir {self.folder} --host localhost"
        )


def _folder_number(trial: Any) -> int:
    """The number in the name of a trial's folder: its own, or that of the trial which it continues."""
    return trial.user_attrs.get("folder", trial.number)


class Watch:
    """Tells Optuna a running trial's validation curve; called again and again, it says when to stop."""

    def __init__(self, trial: Trial, search: Search, path: Path) -> None:
        self.trial, self.search, self.folder = trial, search, RunFolder(path)
        self.seen = -1

    def __call__(self) -> str | None:
        """The reason to end the run here, or None."""
        column = self.search.selection.column
        for row in rows_so_far(self.folder):
            epoch, value = int(row["epoch"]), float(row.get(column) or math.nan)
            if epoch <= self.seen or math.isnan(value):
                continue
            self.seen = epoch
            self.trial.report(value, epoch)
            if epoch + 1 < self.search.cfg.optim.max_epoch and self.trial.should_prune():
                return (
                    f"pruned after epoch {epoch + 1}: {self.search.selection.label} {value:.4f} is behind "
                    "the median of the trials before"
                )
        return None
