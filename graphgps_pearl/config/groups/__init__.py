"""The groups of the config, one file each; a file's ``KEYS`` has the keys, dotted where a group is nested.

A new group is a new file and one entry here.
"""

from __future__ import annotations

from types import ModuleType

from graphgps_pearl.config.groups import (
    bn,
    dataset,
    example,
    general,
    gnn,
    graphormer,
    gt,
    mem,
    model,
    optim,
    posenc_bpearl,
    posenc_elstaticse,
    posenc_equivstablelappe,
    posenc_graphormerbias,
    posenc_hkdiagse,
    posenc_lappe,
    posenc_randomid,
    posenc_rpearl,
    posenc_rwse,
    posenc_signnet,
    posenc_spe,
    pretrained,
    share,
    train,
    val,
    wandb,
)

# "" has the keys that stand outside any group.
GROUPS: dict[str, ModuleType] = {
    "": general,
    "dataset": dataset,
    "posenc_RPEARL": posenc_rpearl,
    "posenc_BPEARL": posenc_bpearl,
    "posenc_LapPE": posenc_lappe,
    "posenc_RWSE": posenc_rwse,
    "posenc_SignNet": posenc_signnet,
    "posenc_SPE": posenc_spe,
    "posenc_EquivStableLapPE": posenc_equivstablelappe,
    "posenc_RandomID": posenc_randomid,
    "posenc_HKdiagSE": posenc_hkdiagse,
    "posenc_ElstaticSE": posenc_elstaticse,
    "posenc_GraphormerBias": posenc_graphormerbias,
    "model": model,
    "gt": gt,
    "gnn": gnn,
    "train": train,
    "val": val,
    "optim": optim,
    "bn": bn,
    "mem": mem,
    "share": share,
    "wandb": wandb,
    "pretrained": pretrained,
    "graphormer": graphormer,
    "example_group": example,
}
