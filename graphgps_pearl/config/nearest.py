"""The key a user probably meant."""

from __future__ import annotations

from difflib import SequenceMatcher, get_close_matches

from graphgps_pearl.config.schema import SCHEMA, SECTIONS

# Names from other code bases that resemble nothing in ours.
_ELSEWHERE = {
    "device": "accelerator",
    "lr": "optim.base_lr",
    "learning_rate": "optim.base_lr",
    "wd": "optim.weight_decay",
    "epochs": "optim.max_epoch",
    "num_epochs": "optim.max_epoch",
    "warmup_epochs": "optim.num_warmup_epochs",
    "grad_clip": "optim.clip_grad_norm_value",
    "num_heads": "gt.n_heads",
    "loss": "model.loss_fun",
    "pooling": "model.graph_pooling",
    "pearl_k": "posenc_BPEARL.num_taps",
    "pe_dims": "posenc_BPEARL.dim_pe",
    "basis": "posenc_BPEARL.enable",
}


def nearest(key: str) -> str:
    """How to go on from an unknown key: ``did you mean gt.n_heads?``, or the keys of its group."""
    group, _, leaf = key.rpartition(".")
    names = [*SCHEMA, *sorted(SECTIONS)]
    siblings = {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == group}
    same_leaf = [name for name in names if name.rpartition(".")[2] == leaf]
    same_leaf.sort(key=lambda name: (not _used(name), -SequenceMatcher(None, key, name).ratio()))
    by_lower = {name.lower(): name for name in names}
    found = (
        [by_lower[name] for name in [key.lower()] if name in by_lower]
        or [siblings[name] for name in get_close_matches(leaf, siblings, n=1, cutoff=0.7)]
        or ([_ELSEWHERE[leaf]] if leaf in _ELSEWHERE else [])
        or same_leaf
        or [siblings[name] for name in get_close_matches(leaf, siblings, n=1)]
        or get_close_matches(key, names, n=1)
    )
    if found:
        return f"did you mean {_describe(found[0])}?"
    return f"{group or 'the config'} has {', '.join(siblings)}" if siblings else "see docs/configuration.md"


def _used(key: str) -> bool:
    return key not in SCHEMA or SCHEMA[key].used


def _describe(key: str) -> str:
    return f"{key} ({SCHEMA[key].allowed})" if key in SCHEMA else f"the group {key}"
