"""Keys outside any group: the run's name and place, seed, threads, device, choice of the best epoch."""

from __future__ import annotations

import re

from graphgps_pearl.config.key import Key


def _device(name: str) -> str | None:
    if re.fullmatch(r"auto|cpu|mps|(cuda|gpu)(:\d+)?", name):
        return None
    return "expected auto, cpu, cuda, cuda:0, cuda:1, ..., gpu or mps"


def _part_of_a_name(text: str) -> str | None:
    # It becomes part of a folder's name, which must stay inside out_dir.
    return "expected text without / and \\" if "/" in text or "\\" in text else None


KEYS = {
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
        [], "Names of metrics registered with GraphGym to report as well.", type=list[str], used=False
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
    "round": Key(5, "Decimals of the numbers in tables.", min=0, max=17, used=False),
    "print": Key("both", "Where GraphGym prints to.", choices=("both", "file", "stdout"), used=False),
    "cfg_dest": Key("config.yaml", "Name of the config's copy in the results.", used=False),
    "run_dir": Key("", "GraphGym's folder of one run; the seed decides it here.", used=False),
    "tensorboard_each_run": Key(False, "TensorBoard for each run; always written here."),
    "tensorboard_agg": Key(True, "TensorBoard for aggregated results.", used=False),
    "view_emb": Key(False, "Show embeddings.", used=False),
    "gpu_mem": Key(False, "Report the GPU's memory.", used=False),
    "benchmark": Key(False, "Time GraphGym's training loop.", used=False),
    "example_arg": Key("example", "Upstream's example of a key.", used=False),
}
