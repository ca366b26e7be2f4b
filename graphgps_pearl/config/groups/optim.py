"""Optimiser, learning rate and schedule."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "optimizer": Key("adam", "Optimiser.", choices=("adamW", "adam", "sgd", "adagrad")),
    "base_lr": Key(0.01, "Learning rate, after warm-up if there is one.", above=0),
    "weight_decay": Key(5e-4, "Weight decay (decoupled with adamW).", min=0),
    "momentum": Key(0.9, "Momentum of sgd.", min=0, below=1),
    "max_epoch": Key(200, "Number of epochs.", min=1),
    "scheduler": Key(
        "cos",
        "Schedule of the learning rate.",
        choices=("none", "step", "cos", "cosine_with_warmup", "linear_with_warmup", "reduce_on_plateau"),
        aliases={"steps": "step"},
    ),
    "num_warmup_epochs": Key(50, "Epochs of linear warm-up in the *_with_warmup schedules.", min=0),
    "min_lr": Key(0.0, "Learning rate below which reduce_on_plateau does not go.", min=0),
    "reduce_factor": Key(0.1, "reduce_on_plateau: factor of each reduction.", above=0, below=1),
    "schedule_patience": Key(10, "reduce_on_plateau: evaluations without improvement before it.", min=0),
    "steps": Key([30, 60, 90], "step: epochs at which the learning rate falls.", type=list[int], min=1),
    "lr_decay": Key(0.1, "step: factor at each of the steps.", above=0, max=1),
    "batch_accumulation": Key(1, "Batches whose gradients are averaged before a step.", min=1),
    "clip_grad_norm": Key(False, "Clip the gradient's norm."),
    "clip_grad_norm_value": Key(1.0, "Largest norm of the gradient when it is clipped.", above=0),
}
