"""One training run, from a resolved config to its result: the only module here that reads ``cfg``."""

from __future__ import annotations

import json
import logging
import os
import warnings
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import nn
from torch_geometric.nn import PNAConv
from yacs.config import CfgNode

from graphgps_pearl import config, data, encoders, networks
from graphgps_pearl.errors import ConfigError, DataError, UserError
from graphgps_pearl.escaping import first_line
from graphgps_pearl.files import write_errors_in_one_line
from graphgps_pearl.processes import say_when_stopped
from graphgps_pearl.runs.checkpoints import Checkpoint, find_checkpoint
from graphgps_pearl.runs.folder import RunFolder, data_facts, seed_and_fold
from graphgps_pearl.training.checkpointer import Checkpointer, LocalCheckpoints
from graphgps_pearl.training.evaluation_weights import EvaluationWeights
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.memory import (
    KNOBS,
    ReleaseBuffers,
    describe_batch,
    is_out_of_memory,
    keep_freed_memory,
    report_largest_batch,
)
from graphgps_pearl.training.metrics import best_metric, custom_metrics, metric_names, require_defined
from graphgps_pearl.training.pretrained import start_from
from graphgps_pearl.training.processes import (
    connect,
    connected,
    decided_by_rank_zero,
    lost_process,
    rank,
    world_size,
)
from graphgps_pearl.training.progress import Progress
from graphgps_pearl.training.recorder import Recorder, metric_columns
from graphgps_pearl.training.schedules import OptimSettings
from graphgps_pearl.training.shared_norm import share_norms
from graphgps_pearl.training.task import GraphTask, TrainingBatches
from graphgps_pearl.training.wandb_log import wandb_logs

log = logging.getLogger(__name__)

_MOST_PAIRS = 1 << 21  # in a batch that re-estimates norms; zinc-bpearl-muon takes 2.4 GB for half of them


class BudgetError(UserError):
    """More trainable parameters than ``train.max_params`` allows."""


def run(cfg: CfgNode, folder: RunFolder, *, overwrite: bool = False) -> dict[str, Any]:
    """Train, or continue, or report the run in ``folder``, and return its result."""
    connect()
    with say_when_stopped(lambda: _how_to_continue(folder)):
        finished = None if overwrite else decided_by_rank_zero(lambda: _finished(cfg, folder))
        return _run(cfg, folder, overwrite) if finished is None else finished


def _finished(cfg: CfgNode, folder: RunFolder) -> dict[str, Any] | None:
    """The result of a finished run with this config. Nothing is written: the folder may be read-only."""
    result = folder.read_result()
    if result is None or not folder.is_same(config.dump(cfg)):
        return None
    log.info("%s is finished; --overwrite trains it again", folder.path)
    return result


def _run(cfg: CfgNode, folder: RunFolder, overwrite: bool) -> dict[str, Any]:
    lock = folder.locked() if rank() == 0 else nullcontext()
    with write_errors_in_one_line(folder.path), lock:
        decided_by_rank_zero(lambda: folder.open(config.dump(cfg), overwrite=overwrite))
        try:
            return _train(cfg, folder)
        finally:
            if rank() == 0:
                folder.restore_replaced()


def _train(cfg: CfgNode, folder: RunFolder) -> dict[str, Any]:
    torch.set_num_threads(cfg.num_threads or automatic_threads())
    keep_freed_memory()
    torch.manual_seed(cfg.seed)
    known = data.declared(cfg)  # an unknown dataset or task is reported before its loss and metric
    task_type = known.task_type
    loss = make_loss(cfg.model.loss_fun, task_type, known.task)
    custom = custom_metrics(cfg.custom_metrics)
    metric, larger_is_better = best_metric(
        cfg.metric_best, cfg.metric_agg, task_type, tuple(custom), known.task
    )
    network, parts, bundle = _prepare_once(cfg)
    require_defined(metric, bundle.spec.select_split, bundle.splits[bundle.spec.select_split])
    decided_by_rank_zero(lambda: folder.require_same_data(bundle.identity))
    if rank() == 0:
        folder.write(folder.data, json.dumps(data_facts(bundle), indent=2) + "\n")
    splits = tuple(bundle.splits)
    optim = optim_settings(cfg)
    task = GraphTask(
        network, loss, task_type, splits[1:], optim, cfg.seed, bundle.moments, custom, known.task
    )
    recorder = Recorder(
        folder,
        metric_columns((*metric_names(task_type, known.task), *custom), splits),
        f"{bundle.spec.select_split}_{metric}",
        larger_is_better,
        patience=cfg.train.early_stopping,
        targets=bundle.spec.target_names,
    )
    progress = Progress(recorder, splits, metric)
    checkpointer = Checkpointer(folder, cfg.train.ckpt_every_batches, cfg.train.ckpt_every_seconds)
    callbacks = [ReleaseBuffers(), recorder, checkpointer, progress]
    callbacks += evaluation_weights(cfg, bundle, network)
    callbacks += wandb_logs(cfg, folder, recorder)
    try:
        trainer = make_trainer(cfg, folder, callbacks)
    except MisconfigurationException as error:
        raise ConfigError(f"accelerator = {cfg.accelerator}: {error}; use auto or cpu") from error
    fit(cfg, trainer, task, bundle, folder)
    result = {
        "config": folder.path.parent.name,
        **seed_and_fold(cfg),
        "splits": list(splits),
        "parameters": parts,
        "prepare_seconds": bundle.prepare_seconds,
        **recorder.summary(),
    }
    if rank() == 0:
        folder.write(folder.result, json.dumps(result, indent=2) + "\n")
    return result


def _prepare_once(cfg: CfgNode) -> tuple[nn.Module, dict[str, int], data.DataBundle]:
    """:func:`prepare`; of several processes the first prepares the data and the others read its cache."""
    prepared: list[tuple[nn.Module, dict[str, int], data.DataBundle]] = []
    decided_by_rank_zero(lambda: prepared.append(prepare(cfg)))
    return prepared[0] if prepared else prepare(cfg)


def prepare(cfg: CfgNode) -> tuple[nn.Module, dict[str, int], data.DataBundle]:
    """The network, its parameters by part, and the data; above the budget no data is read."""
    transforms = encoders.required_transforms(cfg)
    spec, bundle = data.spec(cfg), None
    if spec is None:  # what the network has to know of the data is only in the data
        bundle = data.load(cfg, transforms)
        spec = bundle.spec
    if spec.dim_in is None or spec.dim_out is None:
        raise DataError(f"{spec.name}: the number of node features or of targets is not known")
    torch.manual_seed(cfg.seed)  # again: a registered loader may have drawn numbers, or set a seed of its own
    network = networks.build(cfg, spec.dim_in, spec.dim_out)
    if cfg.pretrained.dir:
        start_from(network, cfg)
    parts = require_budget(network, cfg.train.max_params)
    bundle = bundle or data.load(cfg, transforms)
    encoders.check_features(cfg, next(iter(bundle.splits.values()))[0])
    if networks.needs_degrees(network) and not cfg.gt.pna_degrees:
        graphs: Any = next(iter(bundle.splits.values()))
        networks.set_degrees(network, PNAConv.get_degree_histogram(graphs))
    return network, parts, bundle


def fit(
    cfg: CfgNode, trainer: pl.Trainer, task: GraphTask, bundle: data.DataBundle, folder: RunFolder
) -> None:
    """Train from the newest checkpoint that loads, or from the start."""
    train, *evals = (
        _loader(cfg, graphs, task.network, shuffle=split == next(iter(bundle.splits)))
        for split, graphs in bundle.splits.items()
    )
    if rank() == 0:
        try:
            report_largest_batch(train, task.network, trainer_device(cfg.accelerator))
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                raise UserError(f"out of memory on the largest graph by itself; {KNOBS}") from error
            raise
        folder.forget_replaced()
    checkpoint = decided_by_rank_zero(lambda: find_checkpoint(folder, task.state_dict()))
    if checkpoint is not None:
        _continue_from(checkpoint, train, cfg.optim.max_epoch)
    # Lightning does so after it has loaded the weights, which would round those of a run in float64.
    trainer.precision_plugin.convert_module(task)
    if connected():
        share_norms(task.network)
    if cfg.train.compile and isinstance(task.network, networks.GraphNetwork):
        networks.compile_layers(task.network)
    with warnings.catch_warnings():
        # Advice on worker processes; they were measured slower than none on small graphs.
        warnings.filterwarnings("ignore", ".*does not have many workers.*")
        warnings.filterwarnings("ignore", ".*LeafSpec.*")  # Lightning's use of torch's pytrees
        path = None if checkpoint is None else checkpoint.path
        try:
            trainer.fit(task, TrainingBatches(train), evals, ckpt_path=path, weights_only=True)
        except SystemExit as exit_:
            # A second Ctrl-C, which Lightning turns into an exit with code 1.
            raise KeyboardInterrupt from exit_
        except (RuntimeError, MemoryError) as error:
            if lost_process(error):
                raise UserError(f"another process of this run ended; {_how_to_continue(folder)}") from error
            if is_out_of_memory(error):
                where = f"epoch {task.current_epoch + 1}, batch {task.batches_done + 1}"
                raise UserError(
                    f"{where}: out of memory ({describe_batch(task.last_batch)}); {KNOBS}; "
                    f"{_how_to_continue(folder)}"
                ) from error
            if cfg.train.compile and isinstance(error, torch._dynamo.exc.TorchDynamoException):
                reason = first_line(getattr(error, "inner_exception", error))
                raise UserError(
                    f"train.compile = True: torch.compile cannot compile the layers here ({reason}); set it "
                    f"False, which gives the same results; {_how_to_continue(folder)}"
                ) from error
            raise


def _loader(cfg: CfgNode, graphs: Any, network: nn.Module, *, shuffle: bool) -> data.GraphLoader:
    """Batches for a network: what depends on the graphs alone is computed by the loader, on the CPU."""
    device = trainer_device(cfg.accelerator)
    prepare = networks.preparation(network, "cuda" if device == "gpu" else device)
    return data.make_loader(graphs, cfg, shuffle=shuffle, pin_memory=device == "gpu", prepare=prepare)


def evaluation_weights(cfg: CfgNode, bundle: data.DataBundle, network: nn.Module) -> list[EvaluationWeights]:
    """The callback for ``train.ema_decay`` and ``train.bn_reestimate``, where one of them is on."""
    decay, wanted = cfg.train.ema_decay, cfg.train.bn_reestimate
    if not decay and not wanted:
        return []
    if 0 < wanted < (world := world_size()):
        raise ConfigError(
            f"train.bn_reestimate = {wanted}: is fewer graphs than the {world} processes; set it to at least "
            f"{world}, or to 0"
        )
    graphs = next(iter(bundle.splits.values()))
    count = min(wanted, len(graphs))
    chosen = [graphs[i * len(graphs) // count] for i in range(count)]  # evenly over the split
    batches = _loader(_in_large_batches(cfg, count), chosen, network, shuffle=True) if wanted else None
    return [EvaluationWeights(decay, batches)]


def _in_large_batches(cfg: CfgNode, count: int) -> CfgNode:
    """The config for ``count`` graphs in one batch, or in as few as memory allows, mixed."""
    cfg = cfg.clone()
    cfg.defrost()
    cfg.train.batch_size, cfg.train.sampler = count, "full_batch"
    cfg.train.sampler_max_pairs = min(cfg.train.sampler_max_pairs or _MOST_PAIRS, _MOST_PAIRS)
    return cfg


def _continue_from(checkpoint: Checkpoint, train: data.GraphLoader, max_epoch: int) -> None:
    """Move the loader to where the checkpoint was taken."""
    epoch, batches = checkpoint.epoch, checkpoint.batches
    train.set_epoch(epoch)
    _require_same_batches(checkpoint, train)
    possible = train.num_batches() if epoch < max_epoch else 0
    if epoch > max_epoch or batches > possible:
        raise UserError(
            f"{checkpoint.path}: says epoch {epoch + 1}, batch {batches}, where the run has {max_epoch} "
            f"epochs and this one {possible} batches; give --overwrite to train from the start"
        )
    train.load_state_dict({"epoch": epoch, "batches": batches})
    log.info(
        "continuing %s from %s: %s",
        checkpoint.path.parent,
        checkpoint.path.name,
        f"epoch {epoch + 1}" + (f", after batch {batches}" if batches else ""),
    )


def _require_same_batches(checkpoint: Checkpoint, train: data.GraphLoader) -> None:
    """Make sure that the batches which are done have the graphs that this number of processes would skip."""
    before, now, done = checkpoint.processes, train.sampler.world_size, checkpoint.batches
    batches = train.sampler.global_batches
    if done and before != now and batches(before)[:done] != batches(now)[:done]:
        raise UserError(
            f"{checkpoint.path}: was saved after batch {done} of an epoch by {before} processes, whose "
            f"batches are not those of {now} (bounds hold on each process, and small batches are joined); "
            f"continue with torchrun --nproc_per_node {before}, or give --overwrite to train from the start"
        )


def _how_to_continue(folder: RunFolder) -> str:
    if folder.result.exists():
        return f"{folder.path} is finished"
    if folder.last.exists() or folder.previous.exists():
        return f"saved, the same command continues {folder.path}"
    return f"nothing of {folder.path} was saved, the same command starts it again"


def trainer_device(accelerator: str) -> str:
    """Lightning's name of the device: ``gpu`` (CUDA), ``cpu`` or ``mps``; ``auto`` is a GPU if there is one.

    Lightning's own ``auto`` prefers Apple's MPS, which has neither float64 nor sparse (CSR) products.
    """
    kind = accelerator.partition(":")[0]
    if kind != "auto":
        return "gpu" if kind == "cuda" else kind
    if torch.cuda.is_available():
        return "gpu"
    if torch.backends.mps.is_available():
        log.info("accelerator auto: training on the CPU, because MPS lacks float64 and sparse products")
    return "cpu"


def make_trainer(cfg: CfgNode, folder: RunFolder, callbacks: list[pl.Callback]) -> pl.Trainer:
    """Lightning's trainer with everything that writes files switched off: the recorder does that."""
    world = world_size()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if world == 1 and cfg.devices > 1:
        raise ConfigError(
            f"devices: {cfg.devices} devices need as many processes; start with torchrun --nproc_per_node "
            f"{cfg.devices} main.py --cfg FILE"
        )
    _, _, number = cfg.accelerator.partition(":")
    return pl.Trainer(
        accelerator=trainer_device(cfg.accelerator),
        devices=[int(number)] if number else local if world > 1 else cfg.devices,
        num_nodes=world // local,
        max_epochs=cfg.optim.max_epoch,
        precision=cfg.train.precision,
        deterministic=cfg.train.deterministic or None,
        accumulate_grad_batches=cfg.optim.batch_accumulation,
        check_val_every_n_epoch=min(cfg.train.eval_period, cfg.optim.max_epoch),
        callbacks=callbacks,
        plugins=[LocalCheckpoints(), *([] if world > 1 else [LightningEnvironment()])],
        default_root_dir=folder.path,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
    )


def require_budget(network: nn.Module, max_params: int) -> dict[str, int]:
    """Parameters by part; above ``max_params`` (0 = no limit) the run ends here."""
    parts = networks.count_parameters(network)
    total = sum(parts.values())
    if 0 < max_params < total:
        listing = ", ".join(f"{part} {count:,}" for part, count in parts.items())
        raise BudgetError(
            f"train.max_params: the model has {total:,} trainable parameters, the budget is {max_params:,} "
            f"({listing}); narrow the largest part, or raise train.max_params (0 = no limit)"
        )
    return parts


def optim_settings(cfg: CfgNode) -> OptimSettings:
    """The ``optim`` group as plain settings."""
    settings = OptimSettings(**{field.name: cfg.optim[field.name] for field in fields(OptimSettings)})
    return settings if cfg.optim.clip_grad_norm else replace(settings, clip_grad_norm_value=None)


def automatic_threads() -> int:
    """What ``OMP_NUM_THREADS`` says, else two if there are two cores: measured, see docs/notes/speed.md."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdigit() and int(said) > 0 else min(2, os.cpu_count() or 1)
