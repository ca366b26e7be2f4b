"""Weights & Biases, where it is installed and ``wandb.use`` asks for it: the scalars that TensorBoard
gets."""

from __future__ import annotations

import hashlib
import logging
from importlib.util import find_spec
from typing import Any

import lightning.pytorch as pl
from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.errors import UserError
from graphgps_pearl.runs.folder import RunFolder, stored_config
from graphgps_pearl.training.recorder import Recorder

log = logging.getLogger(__name__)


def wandb_logs(cfg: CfgNode, folder: RunFolder, recorder: Recorder) -> list[pl.Callback]:
    """The callback, if it is asked for; a line in the log where wandb is not installed."""
    if not cfg.wandb.use:
        return []
    if find_spec("wandb") is None:
        log.info(
            "wandb.use True: wandb is not installed (pip install wandb); files and TensorBoard have it all"
        )
        return []
    return [WandbLog(cfg, folder, recorder)]


class WandbLog(pl.Callback):
    """Logs every epoch's row; a continued run goes on in the same one there."""

    def __init__(self, cfg: CfgNode, folder: RunFolder, recorder: Recorder) -> None:
        self.cfg, self.folder, self.recorder = cfg, folder, recorder
        self._run: Any = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin, or go on with, the run there."""
        if not trainer.is_global_zero:
            return
        import wandb

        place = self.folder.path.resolve()
        try:
            self._run = wandb.init(
                project=self.cfg.wandb.project,
                # GraphGPS's default is its authors' team.
                entity=None if self.cfg.wandb.entity in ("", "gtransformers") else self.cfg.wandb.entity,
                name=self.cfg.wandb.name or f"{place.parent.name}-{place.name}",
                config=stored_config(config.dump(self.cfg)),
                dir=str(place),
                id=hashlib.sha256(str(place).encode()).hexdigest()[:16],
                resume="allow",
            )
        except wandb.errors.Error as error:
            raise UserError(
                f"wandb.use True: {str(error).splitlines()[0]}; run wandb login, or set "
                "WANDB_MODE=offline, or wandb.use False"
            ) from error

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the row that the recorder has just written."""
        if self._run is not None:
            self._run.log(self.recorder.scalars(), step=trainer.current_epoch)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Finish."""
        self._finish(0)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Finish, as a run that did not end by itself."""
        self._finish(1)

    def _finish(self, exit_code: int) -> None:
        if self._run is not None:
            self._run.finish(exit_code)
            self._run = None
