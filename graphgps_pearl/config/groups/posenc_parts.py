"""Keys that several encodings share, as functions that return them."""

from __future__ import annotations

from graphgps_pearl.config.key import Key
from graphgps_pearl.config.times import check_times

OPERATORS = ("adjacency", "laplacian", "sym_adjacency", "sym_laplacian", "random_walk")
ACTIVATIONS = (
    "relu",
    "gelu",
    "silu",
    "elu",
    "leaky_relu",
    "tanh",
    "sigmoid",
    "softplus",
    "square",
    "cube",
    "identity",
)
POOLS = ("mean", "sum", "var", "std", "max")
PAIR_POOLS = (*POOLS, "self")


def switch(used: bool = True) -> dict[str, Key]:
    """``enable``, which every encoding has."""
    text = "Set by naming the encoding in dataset.node_encoder_name; may not contradict it."
    return {"enable": Key(False, text, used=used)}


def placed(dim_pe: int = 16, used: bool = True) -> dict[str, Key]:
    """Where and how wide an encoding enters the network."""
    keys = {
        **switch(used),
        "dim_pe": Key(dim_pe, "Columns of the encoding.", min=1, used=used),
        "pass_as_var": Key(False, "Also store the encoding as batch.pe_<NAME>.", used=used),
    }
    if used:
        keys["inject"] = Key(
            "input",
            "Where it enters: concatenated to the input, or projected into every layer.",
            choices=("input", "every_layer"),
        )
    return keys


def network(models: tuple[str, ...], used: bool = True) -> dict[str, Key]:
    """Upstream's network over a precomputed encoding; ``none`` is its default and names no network."""
    return {
        "model": Key("none", "Network over the precomputed values.", choices=("none", *models), used=used),
        "layers": Key(3, "Layers of that network.", min=0, used=used),
        "n_heads": Key(4, "Attention heads if that network is a Transformer.", min=1, used=used),
        "post_layers": Key(0, "Layers after its pooling.", min=0, used=used),
        "raw_norm_type": Key(
            "none", "Normalisation of the precomputed values.", choices=("none", "BatchNorm"), used=used
        ),
    }


def eigen(fewest: int = 1) -> dict[str, Key]:
    """Which eigenvectors; ``fewest = 0`` where an encoding can use all of them."""
    return {
        "eigen.laplacian_norm": Key("sym", "Normalisation of the Laplacian.", choices=("none", "sym", "rw")),
        "eigen.eigvec_norm": Key(
            "L2",
            "Normalisation of the eigenvectors.",
            choices=("L1", "L2", "abs-max", "wavelength", "wavelength-asin", "wavelength-soft"),
        ),
        "eigen.max_freqs": Key(
            10, "Number of eigenvectors." if fewest else "Number of eigenvectors; 0 = all.", min=fewest
        ),
        "eigen.which": Key(
            "smallest", "Which end of the spectrum they are taken from.", choices=("smallest", "largest")
        ),
    }


def kernel(used: bool = True) -> dict[str, Key]:
    """At which times or numbers of steps a kernel is evaluated."""
    return {
        "kernel.times": Key(
            [],
            "Steps of the walk, one by one.",
            type=list[int] if used else list[float],
            min=1 if used else 0,
            used=used,
        ),
        "kernel.times_func": Key(
            "",
            "Steps of the walk as range(a,b) or range(a,b,c); goes before kernel.times.",
            check=check_times,
            used=used,
        ),
    }


def phi(pool: str, pools: tuple[str, ...] = POOLS) -> dict[str, Key]:
    """The GNN Φ of PEARL and the statistic over its samples, one or several of ``pools``."""

    def check_pool(text: str) -> str | None:
        parts = text.split("+")
        if set(parts) <= set(pools) and len(set(parts)) == len(parts):
            return None
        return f"expected one or several of {', '.join(pools)} joined by +, such as mean+std"

    return {
        "hidden_dim": Key(40, "Width F of Φ.", min=1),
        "num_layers": Key(4, "GIN layers L of Φ.", min=0),
        "num_taps": Key(
            1, "Taps K of the generalised layer before them; 0 = no such layer.", min=0, max=1000
        ),
        "gso": Key("sym_laplacian", "Graph shift operator S of the taps.", choices=OPERATORS),
        "mlp_layers": Key(2, "Layers of each GIN layer's MLP.", min=1),
        "mlp_hidden": Key(0, "Width inside that MLP; 0 = hidden_dim.", min=0),
        "norm": Key(
            "batch",
            "Normalisation inside Φ; graph = per graph in the first layer, as the authors' code has it.",
            choices=("batch", "layer", "graph", "none"),
        ),
        "skip": Key(
            "residual",
            "Skip connections of Φ; sum = the layers' outputs are added up.",
            choices=("none", "residual", "sum"),
        ),
        "act": Key("relu", "Activation inside Φ.", choices=ACTIVATIONS),
        "pool": Key(
            pool,
            f"Statistic over the samples: {', '.join(pools)}; several are joined by + and projected.",
            check=check_pool,
        ),
        "scale": Key(
            False, "Divide the encoding by sqrt(N) times the number of layers of Φ, the taps' among them."
        ),
    }
