"""The bridge to ``torch_geometric.graphgym.config.cfg``, which modules registered with GraphGym read."""

from __future__ import annotations

from yacs.config import CfgNode

from graphgps_pearl.config.times import kernel_times


def activate(cfg: CfgNode, dim_in: int | None = None, dim_out: int | None = None) -> None:
    """Copy a config into GraphGym's global one, with what GraphGym and upstream's main derive from it.

    GraphGym's config is set up anew first, so groups that a third party added with ``register_config`` are
    there with their defaults, and nothing of an earlier config is left. ``dim_in`` and ``dim_out`` (columns
    of the node features, number of outputs) go to ``cfg.share``. The config given is not changed.
    """
    from torch_geometric.graphgym.config import cfg as target
    from torch_geometric.graphgym.config import set_cfg

    target.defrost()
    set_cfg(target)
    _copy(cfg, target)
    target["run_dir"] = cfg.run_dir or cfg.out_dir
    target.gnn["layers_post_mp"] = max(1, cfg.gnn.layers_post_mp)
    if cfg.gnn.head == "default":
        target.gnn["head"] = cfg.dataset.task
    if cfg.dataset.task == "graph":
        target.dataset["transductive"] = False
    target.posenc_RWSE.kernel["times"] = kernel_times(cfg.posenc_RWSE.kernel)
    if dim_in is not None:
        target.share["dim_in"] = dim_in
    if dim_out is not None:
        target.share["dim_out"] = dim_out


def _copy(source: CfgNode, target: CfgNode) -> None:
    for key, value in source.items():
        if isinstance(value, CfgNode):
            if not isinstance(target.get(key), CfgNode):
                target[key] = CfgNode()
            _copy(value, target[key])
        else:
            target[key] = list(value) if isinstance(value, list) else value
