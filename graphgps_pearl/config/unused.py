"""GraphGym's and GraphGPS's keys that change nothing here: accepted, so that their files load as they are.

Keys of earlier versions that have lost their effect are here too.

Each block has a reason, and the keys with upstream's defaults. Types are checked, ranges are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphgps_pearl.config.key import Key, Value

Table = tuple[tuple[str, dict[str, Value]], ...]

_POSENC = {
    "enable": False, "dim_pe": 16, "pass_as_var": False, "model": "none", "layers": 3, "n_heads": 4,
    "post_layers": 0, "raw_norm_type": "none", "kernel.times": list[float], "kernel.times_func": "",
}  # fmt: skip


def _in(group: str, keys: dict[str, Value]) -> dict[str, Value]:
    return {f"{group}.{key}": value for key, value in keys.items()}


#: Used where a network or layer of GraphGym's own is built, which finds them in GraphGym's config.
READ_BY_GRAPHGYM: dict[str, Value] = {
    **_in("gnn", {
        "agg": "add", "skip_every": 1, "normalize_adj": False, "msg_direction": "single",
        "self_msg": "concat", "att_heads": 1, "att_final_linear": False, "att_final_linear_bn": False,
        "keep_edge": 0.5, "clear_feature": True,
    }),
    "mem.inplace": False,
    "dataset.edge_dim": 128,
}  # fmt: skip


# What these ask for is done in every run, so setting them is not worth a log line.
_ALWAYS: Table = (
    ("every run writes TensorBoard files", {"tensorboard_each_run": False}),
    ("the best checkpoint is always kept", {"train.ckpt_best": False}),
    ("an unfinished run always resumes", {"train.auto_resume": False}),
    ("there is one training loop", {"train.mode": "custom"}),
)

_NO_EFFECT: Table = (
    ("the threshold of binary classification is 0.5", {"model.thresh": 0.5}),
    ("tables choose their own decimals", {"round": 5}),
    ("names of files and folders are fixed", {"cfg_dest": "config.yaml", "run_dir": ""}),
    ("messages go to the terminal and to the run's log", {"print": "both"}),
    ("results of seeds are aggregated into tables", {"tensorboard_agg": True}),
    ("a diagnostic of GraphGym's training loop", {"view_emb": False, "gpu_mem": False, "benchmark": False}),
    ("upstream's example of a key", {"example_arg": "example", "example_group.example_arg": "example"}),
    ("splits are kept with the prepared data", {"dataset.split_dir": "./splits"}),
    ("GraphGym's data pipeline; graphs are read and cached by graphgps_pearl.data", _in("dataset", {
        "shuffle_split": True, "transform": "none", "cache_save": False, "cache_load": False,
        "remove_feature": False, "tu_simple": True, "to_undirected": False, "location": "local",
        "label_table": "none", "label_column": "none",
    })),
    ("GraphGym's general encoder; dataset.node_encoder and edge_encoder are what is used", _in("dataset", {
        "encoder": True, "encoder_name": "db", "encoder_bn": True, "encoder_dim": 128,
    })),
    ("link tasks on one graph are not offered", _in("dataset", {
        "edge_train_mode": "all", "edge_message_ratio": 0.8, "edge_negative_sampling_ratio": 1.0,
        "resample_disjoint": False, "infer_link_label": "None",
    })),
    ("the heat-kernel encoding is not offered", _in("posenc_HKdiagSE", _POSENC)),
    ("the electrostatic encoding is not offered",
        _in("posenc_ElstaticSE", {**_POSENC, "kernel.times_func": "range(10)"})),
    ("it has no attention", {"posenc_RWSE.n_heads": 4, "posenc_SignNet.n_heads": 4}),
    ("nothing is pooled", {"posenc_RWSE.post_layers": 0}),
    ("eigenvectors are read as eigvec_norm has them", {"posenc_SignNet.raw_norm_type": "none"}),
    ("equal rows of B-PEARL are found in every batch", {"posenc_BPEARL.plan": "batch"}),
    ("losses are means over the labels", {"model.size_average": "mean"}),
    ("the budget is train.max_params", {"model.match_upper": True}),
    ("GPS and SAN layers always have residual connections", {"gt.residual": True}),
    ("BigBird is not offered", _in("gt.bigbird", {
        "attention_type": "block_sparse", "chunk_size_feed_forward": 0, "is_decoder": False,
        "add_cross_attention": False, "hidden_act": "relu", "max_position_embeddings": 128,
        "use_bias": False, "num_random_blocks": 3, "block_size": 3, "layer_norm_eps": 1e-6,
    })),
    ("read by GraphGym's own networks and layers alone", READ_BY_GRAPHGYM),
    ("the last and the best checkpoint of a run are always kept",
        _in("train", {"enable_ckpt": True, "ckpt_period": 100, "ckpt_clean": True})),
    ("a run resumes from its latest checkpoint", {"train.epoch_resume": -1}),
    ("the training split is always evaluated", {"train.skip_train_eval": False}),
    ("batches are of whole graphs; train.sampler says how they are drawn", {
        **_in("train", {
            "iter_per_epoch": 32, "sample_node": False, "node_per_graph": 32, "radius": "extend",
            "walk_length": 4, "neighbor_sizes": [20, 15, 10, 5],
        }),
        **_in("val", {
            "sample_node": False, "sampler": "full_batch", "node_per_graph": 32, "radius": "extend",
        }),
    }),
    ("the data decides it", _in("share", {"dim_in": 1, "dim_out": 1, "num_splits": 1})),
)  # fmt: skip


def _mode(value: str) -> str | None:
    if value in ("custom", "standard"):
        return None
    wrong = "expected one of custom, standard"
    if "inference" not in value:
        return wrong
    return f"{wrong}; of a trained run result.json has all metrics, and graphgps-pearl predict RUN predicts"


def _key(name: str, default: Value, reason: str, always: bool) -> Key:
    """A type instead of a default stands for an empty list of that type."""
    about = f"{reason[0].upper()}{reason[1:]}."
    if default == list[float]:
        return Key([], about, type=default, used=False)
    of = list[int] if isinstance(default, list) else None
    # Refused, since ignoring it would give another run than the file asks for.
    check = _mode if name == "train.mode" else None
    return Key(default, about, type=of, used=False, always=always, check=check)


def unused_keys() -> Iterator[tuple[str, Key]]:
    """Every such key, dotted, and its entry."""
    for table, always in ((_NO_EFFECT, False), (_ALWAYS, True)):
        for reason, keys in table:
            for name, default in keys.items():
                yield name, _key(name, default, reason, always)
