"""The training loop: batches, evaluation, checkpoints, budget."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "batch_size": Key(16, "Graphs in a batch, over all processes.", min=1),
    "sampler": Key(
        "full_batch",
        "How batches are drawn: full_batch = shuffled graphs, size_bucket = shuffled, then of similar sizes.",
        choices=("full_batch", "size_bucket"),
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
    "precision": Key("32", "Number format of the training.", choices=("32", "64", "bf16-mixed", "16-mixed")),
    "deterministic": Key(False, "Allow only operations that give the same result every time, also on a GPU."),
    "ckpt_every_batches": Key(
        0, "Save within an epoch every so many batches; 0 = not. An epoch's end is always saved.", min=0
    ),
    "ckpt_every_seconds": Key(
        600.0,
        "Save within an epoch every so many seconds; 0 = not. A stop by a signal is always saved.",
        min=0,
    ),
    "enable_ckpt": Key(True, "Write checkpoints; always done here.", used=False),
    "ckpt_period": Key(100, "Epochs between checkpoints; each has one here.", min=1, used=False),
    "ckpt_best": Key(False, "Upstream's switch for the best checkpoint; always kept here."),
    "ckpt_clean": Key(True, "Keep the last checkpoint only; here last and best are kept.", used=False),
    "auto_resume": Key(False, "Resume an unfinished run; always done here."),
    "epoch_resume": Key(-1, "Epoch to resume from; -1 = the latest.", min=-1, used=False),
    "mode": Key(
        "custom", "Upstream's training loop; both mean the one here.", choices=("custom", "standard")
    ),
    "skip_train_eval": Key(False, "Skip the evaluation of the training split.", used=False),
    "iter_per_epoch": Key(32, "Iterations per epoch of GraphGym's samplers.", min=1, used=False),
    "sample_node": Key(False, "Sample nodes for a batch.", used=False),
    "node_per_graph": Key(32, "Nodes sampled per graph.", min=1, used=False),
    "radius": Key("extend", "Radius of the sampled neighbourhood.", choices=("same", "extend"), used=False),
    "walk_length": Key(4, "Length of GraphSAINT's random walks.", min=1, used=False),
    "neighbor_sizes": Key(
        [20, 15, 10, 5], "Neighbours sampled per layer.", type=list[int], min=-1, used=False
    ),
}
