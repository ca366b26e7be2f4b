"""Keys of a run: seed, device, batches, evaluation, checkpoints, optimiser and schedule."""

from __future__ import annotations

import re

from graphgps_pearl.config.key import Groups, Key
from graphgps_pearl.vocabulary import OPTIMIZERS, PRECISIONS, SAMPLERS, SCHEDULERS


def _device(name: str) -> str | None:
    if re.fullmatch(r"auto|cpu|mps|(cuda|gpu)(:\d+)?", name):
        return None
    return "expected auto, cpu, cuda, cuda:0, cuda:1, ..., gpu or mps"


def _part_of_a_name(text: str) -> str | None:
    # It becomes part of a folder's name, which must stay inside out_dir.
    return "expected text without / and \\" if "/" in text or "\\" in text else None


def _metric_names(names: list[str]) -> str | None:
    # Columns are <split>_<metric>.
    return "expected names without _, such as [medae]" if any("_" in name for name in names) else None


_RUN = {
    "out_dir": Key("results", "Folder of the results; each config file gets a folder of its own in it."),
    "name_tag": Key(
        "", "Added to the name of the run's folder: <out_dir>/<config>-<name_tag>.", check=_part_of_a_name
    ),
    "seed": Key(
        0, "Seed of the first run; with --repeat N the seeds are seed .. seed+N-1.", min=0, max=2**31 - 1
    ),
    "metric_best": Key(
        "auto", "Metric that chooses the best epoch; auto = by the task (mae, accuracy, auc, ap)."
    ),
    "metric_agg": Key(
        "argmax",
        "Whether the best is the largest or the smallest value of metric_best.",
        choices=("argmax", "argmin"),
    ),
    "custom_metrics": Key(
        [],
        "Further metrics to report, registered with GraphGym's register_metric.",
        type=list[str],
        check=_metric_names,
    ),
    "run_multiple_splits": Key(
        [], "Run once per listed split instead of once per seed.", type=list[int], min=0
    ),
    "accelerator": Key("auto", "Device to train on: auto, cpu, cuda, cuda:N or mps.", check=_device),
    "devices": Key(1, "Number of devices to train on.", min=1),
    "num_threads": Key(0, "Threads that torch may use; 0 = as many as help.", min=0, max=1024),
    "num_workers": Key(
        0, "Processes that prepare and load data; 0 = the training process itself.", min=0, max=1024
    ),
}

_TRAIN = {
    "batch_size": Key(16, "Graphs in a batch, over all processes.", min=1),
    "sampler": Key(
        "full_batch",
        "How batches are drawn: full_batch = shuffled graphs, size_bucket = shuffled, then of similar sizes.",
        choices=SAMPLERS,
    ),
    "sampler_window": Key(8, "size_bucket: sort by size within so many batches.", min=1),
    "sampler_max_nodes": Key(0, "Most nodes in a process's batch; 0 = no bound.", min=0),
    "sampler_max_pairs": Key(0, "Most node pairs (sum of n^2) in a process's batch; 0 = no bound.", min=0),
    "eval_period": Key(10, "Evaluate every so many epochs, and after the last.", min=1),
    "max_params": Key(
        0, "Most trainable parameters allowed; above it the run stops early. 0 = no limit.", min=0
    ),
    "early_stopping": Key(
        0, "Stop after so many evaluations without a better metric_best; 0 = never.", min=0
    ),
    "ema_decay": Key(
        0.0,
        "Evaluate weights averaged over the steps with this decay, such as 0.999; 0 = not.",
        min=0,
        below=1,
    ),
    "bn_reestimate": Key(
        0,
        "Before an evaluation, estimate the batch norms' statistics from so many training graphs, in one "
        "batch where memory allows it; 0 = not.",
        min=0,
    ),
    "precision": Key("32", "Number format of the training.", choices=PRECISIONS),
    "compile": Key(False, "Compile the layers with torch.compile, for a GPU; see docs/gpu.md."),
    "deterministic": Key(False, "Allow only operations that give the same result every time, also on a GPU."),
    "ckpt_every_batches": Key(
        0, "Save within an epoch every so many batches; 0 = not. An epoch's end is always saved.", min=0
    ),
    "ckpt_every_seconds": Key(
        600.0,
        "Save within an epoch every so many seconds; 0 = not. A stop by a signal is always saved.",
        min=0,
    ),
}

_OPTIM = {
    "optimizer": Key("adam", "Optimiser; muon: Muon for matrices, AdamW for the rest.", choices=OPTIMIZERS),
    "base_lr": Key(0.01, "Learning rate, after warm-up if there is one.", above=0),
    "weight_decay": Key(5e-4, "Weight decay (decoupled with adamW and muon).", min=0),
    "momentum": Key(0.9, "Momentum of sgd and of muon, which is mostly used with 0.95.", min=0, below=1),
    "max_epoch": Key(200, "Number of epochs.", min=1),
    "scheduler": Key("cos", "Schedule of the learning rate.", choices=SCHEDULERS, aliases={"steps": "step"}),
    "num_warmup_epochs": Key(
        50,
        "Epochs of linear warm-up in the *_with_warmup schedules; max_epoch or more becomes a tenth of it.",
        min=0,
    ),
    "min_lr": Key(0.0, "Learning rate below which reduce_on_plateau does not go.", min=0),
    "reduce_factor": Key(0.1, "reduce_on_plateau: factor of each reduction.", above=0, below=1),
    "schedule_patience": Key(10, "reduce_on_plateau: evaluations without improvement before it.", min=0),
    "steps": Key([30, 60, 90], "step: epochs at which the learning rate falls.", type=list[int], min=1),
    "lr_decay": Key(0.1, "step: factor at each of the steps.", above=0, max=1),
    "batch_accumulation": Key(1, "Batches whose gradients are averaged before a step.", min=1),
    "clip_grad_norm": Key(False, "Clip the gradient's norm."),
    "clip_grad_norm_value": Key(1.0, "Largest norm of the gradient when it is clipped.", above=0),
}

_WANDB = {
    "use": Key(False, "Log the scalars of TensorBoard to Weights & Biases too, where wandb is installed."),
    "entity": Key("gtransformers", "User or team there; GraphGPS's own, which is the default, means yours."),
    "project": Key("gtblueprint", "Project there."),
    "name": Key("", "Name of the run there; empty = the run's folder."),
}

_PRETRAINED = {
    "dir": Key(
        "",
        "Whose weights are the start: a run folder, such as results/zinc-bpearl/0, a model folder, or a "
        "shipped model by its name; empty = none.",
    ),
    "reset_prediction_head": Key(True, "Begin with a new head."),
    "freeze_main": Key(False, "Train the head alone."),
}

GROUPS: Groups = {
    "": ("The run's name and folder, seed, threads, device, choice of the best epoch.", _RUN),
    "train": ("The training loop: batches, evaluation, checkpoints, budget.", _TRAIN),
    "optim": ("Optimiser, learning rate and schedule.", _OPTIM),
    "pretrained": ("Start from the weights of another run or model.", _PRETRAINED),
    "wandb": ("Weights & Biases.", _WANDB),
}
