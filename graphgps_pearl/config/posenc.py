"""Keys of the encodings, one group ``posenc_<NAME>`` each; keys that several share come from functions."""

from __future__ import annotations

import re
from typing import Any

from graphgps_pearl.config.key import Groups, Key, Value
from graphgps_pearl.vocabulary import (
    DISTRIBUTIONS,
    EIGENVECTOR_NORMS,
    ENCODING_MODELS,
    IDENTIFIER_DISTRIBUTIONS,
    INJECTIONS,
    LAPLACIAN_NORMS,
    NORMS,
    OPERATORS,
    PAIR_BIASES,
    PAIR_POOLS,
    PEARL_ACTIVATIONS,
    PHI_ENDS,
    POOLS,
    RAW_NORMS,
    SKIPS,
    SPECTRUM_ENDS,
)

MAX_TIMES = 1000
_RANGE = re.compile(r"\s*range\(\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)\s*")
_ENABLE = Key(False, "Set by naming the encoding in dataset.node_encoder_name; may not contradict it.")
_RAW_NORM = Key("none", "Normalisation of the precomputed values.", choices=RAW_NORMS)

# Upstream's defaults of these name no network and no steps; what a named encoding gets where nothing was set.
# The keys of NEEDED are filled in one by one, the others only together with the network.
SET_UP: dict[str, dict[str, Value]] = {
    "RWSE": {"model": "Linear", "raw_norm_type": "BatchNorm", "kernel.times_func": "range(1,21)"},
    "LapPE": {"model": "DeepSet", "layers": 2},
    "SignNet": {"model": "DeepSet", "post_layers": 2},
}
NEEDED = ("model", "kernel.times_func", "post_layers")


def parse_range(text: str) -> range:
    """The range that ``range(a,b)`` or ``range(a,b,c)`` names, never evaluated; else a ValueError.

    >>> list(parse_range("range(1, 9, 2)"))
    [1, 3, 5, 7]
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError("expected range(a,b) or range(a,b,c) with integers, and nothing else")
    start, stop, step = (int(part) if part is not None else 1 for part in match.groups())
    if step == 0:
        raise ValueError("expected range(a,b,c) with a step c that is not 0")
    times = range(start, stop, step)
    if not 1 <= len(times) <= MAX_TIMES or min(times) < 1:
        raise ValueError(f"expected a range of 1 to {MAX_TIMES} numbers, all >= 1")
    return times


def kernel_times(kernel: Any) -> list[int]:
    """The times of a ``posenc_*.kernel`` group: those of ``times_func`` if it is set, else ``times``."""
    return list(parse_range(kernel.times_func)) if kernel.times_func else list(kernel.times)


def _check_times(text: str) -> str | None:
    try:
        if text:
            parse_range(text)
    except ValueError as error:
        return str(error)
    return None


def _placed() -> dict[str, Key]:
    """Where and how wide an encoding enters the network."""
    return {
        "enable": _ENABLE,
        "dim_pe": Key(16, "Columns of the encoding.", min=1),
        "pass_as_var": Key(False, "Also store the encoding as batch.pe_<NAME>."),
        "inject": Key(
            "input",
            "Where it enters: concatenated to the input, or projected into every layer.",
            choices=INJECTIONS,
        ),
    }


def _network(encoding: str, layers: str) -> dict[str, Key]:
    """Upstream's network over a precomputed encoding; ``none`` is its default and names no network."""
    choices = ("none", *ENCODING_MODELS[encoding])
    return {
        "model": Key("none", "Network over the precomputed values.", choices=choices),
        "layers": Key(3, layers, min=0),
    }


def _eigen(fewest: int = 0) -> dict[str, Key]:
    """Which eigenvectors; ``fewest = 0`` where an encoding can use all of them."""
    number = "Number of eigenvectors." if fewest else "Number of eigenvectors; 0 = all."
    return {
        "eigen.laplacian_norm": Key("sym", "Normalisation of the Laplacian.", choices=LAPLACIAN_NORMS),
        "eigen.eigvec_norm": Key("L2", "Normalisation of the eigenvectors.", choices=EIGENVECTOR_NORMS),
        "eigen.max_freqs": Key(10, number, min=fewest),
        "eigen.which": Key(
            "smallest", "Which end of the spectrum they are taken from.", choices=SPECTRUM_ENDS
        ),
    }


def _phi(pool: str, pools: tuple[str, ...], scale: bool) -> dict[str, Key]:
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
            choices=NORMS,
        ),
        "skip": Key(
            "residual", "Skip connections of Φ; sum = the layers' outputs are added up.", choices=SKIPS
        ),
        "act": Key("relu", "Activation inside Φ.", choices=PEARL_ACTIVATIONS),
        "end": Key(
            "activation",
            "End of a GIN layer of Φ; linear = no activation, and the last layer's linear map instead of a "
            "readout, as the authors' code has it.",
            choices=PHI_ENDS,
        ),
        "pool": Key(
            pool,
            f"Statistic over the samples: {', '.join(pools)}; several are joined by + and projected.",
            check=check_pool,
        ),
        "scale": Key(
            scale, "Divide the encoding by sqrt(N) times the number of layers of Φ, the taps' among them."
        ),
    }


def _eval_seed(of: str) -> Key:
    return Key(0, f"Seed of the {of} used in evaluation.", min=0, max=2**31 - 1)


_RPEARL = {
    **_placed(),
    **_phi("mean", POOLS, scale=False),
    "num_samples": Key(50, "Samples M.", min=1),
    "distribution": Key(
        "gaussian",
        "Distribution of the samples; sobol = Gaussian from a scrambled Sobol sequence.",
        choices=DISTRIBUTIONS,
    ),
    "chunk_size": Key(
        0,
        "Samples that go through Φ at once, to bound the memory (training: norm layer or none); 0 = all.",
        min=0,
    ),
    "eval_seed": _eval_seed("samples"),
    "tap_moments": Key(
        False,
        "Add the second moments of the taps over the samples (with sym_adjacency: estimates of RWSE) to the "
        "statistics; needs num_taps >= 2.",
    ),
    "num_eval_draws": Key(1, "Independent draws of the samples averaged in evaluation.", min=1),
}

_BPEARL = {
    **_placed(),
    **_phi("sum", PAIR_POOLS, scale=True),
    "tap_diagonal": Key(
        False,
        "Add the taps' own diagonal (with random_walk: RWSE) to the statistics; needs num_taps >= 2.",
    ),
    "pair_bias": Key(
        "none",
        "Add a projection of Φ(G, e_m)[v] and Φ(G, e_v)[m] to the attention logits of query v and key m: "
        "the same in all layers, one for each, or of pairs that every layer updates.",
        choices=PAIR_BIASES,
    ),
    "pair_dim": Key(16, "Channels of the pairs that pair_bias: updated carries through the layers.", min=1),
    "pair_edges": Key(False, "Add a projection of Φ(G, e_u)[v] to the features of edge (u, v)."),
}

_LAPPE = {
    **_placed(),
    **_network("LapPE", "Layers of that network."),
    "n_heads": Key(4, "Attention heads of a Transformer.", min=1),
    "post_layers": Key(0, "Layers after the sum over the eigenvectors.", min=0),
    "raw_norm_type": _RAW_NORM,
    **_eigen(),
}

_RWSE = {
    **_placed(),
    **_network("RWSE", "Layers of an MLP."),
    "raw_norm_type": _RAW_NORM,
    "kernel.times": Key([], "Steps of the walk, one by one.", type=list[int], min=1),
    "kernel.times_func": Key(
        "",
        "Steps of the walk as range(a,b) or range(a,b,c); goes before kernel.times.",
        check=_check_times,
    ),
}

_SIGNNET = {
    **_placed(),
    **_network("SignNet", "GIN layers of φ."),
    "post_layers": Key(0, "Layers of ρ.", min=0),
    **_eigen(),
    "phi_out_dim": Key(4, "Width of φ's output.", min=1),
    "phi_hidden_dim": Key(64, "Width inside φ.", min=1),
}

_SPE = {
    **_placed(),
    **_eigen(),
    # V diag(φ(λ)) Vᵀ is the same for every basis of an eigenspace only if the columns of V are orthonormal.
    "eigen.laplacian_norm": Key("sym", "Normalisation of the Laplacian.", choices=("none", "sym")),
    "eigen.eigvec_norm": Key("L2", "Normalisation of the eigenvectors.", choices=("L2",)),
    "model": Key(
        "MLP", "How φ acts: on each eigenvalue, or with a view of all.", choices=ENCODING_MODELS["SPE"]
    ),
    "layers": Key(3, "Layers of φ, which acts on the eigenvalues.", min=2),
    "phi_hidden_dim": Key(16, "Width inside φ.", min=1),
    "phi_out_dim": Key(16, "Number of filters, which is φ's output width.", min=1),
    "post_layers": Key(3, "GIN layers of ρ.", min=1),
    "post_hidden_dim": Key(40, "Width inside ρ.", min=1),
}

_BASISNET = {
    **_placed(),
    "eigen.laplacian_norm": Key("sym", "Normalisation of the Laplacian.", choices=("none", "sym")),
    "eigen.max_freqs": Key(10, "Number of eigenvectors, whole eigenspaces of them; 0 = all.", min=0),
    "eigen.which": Key("smallest", "Which end of the spectrum they are taken from.", choices=SPECTRUM_ENDS),
    "layers": Key(2, "Equivariant maps between matrices in φ.", min=1),
    "phi_hidden_dim": Key(16, "Channels of the matrices in φ.", min=1),
    "phi_out_dim": Key(16, "Width of φ's output.", min=1),
    "max_multiplicity": Key(3, "Eigenspaces of this dimension and above share one φ.", min=1, max=100),
    "post_layers": Key(2, "Layers of ρ, after the sum over eigenspaces.", min=1),
}


def _largest(default: int, most: int, what: str) -> Key:
    """The largest subgraph that is counted; none has fewer than three nodes."""

    def check(size: int) -> str | None:
        return None if size == 0 or size >= 3 else f"expected 0 (count none) or a size from 3 to {most}"

    return Key(
        default, f"Largest {what} that is counted, from 3 nodes up; 0 = none.", min=0, max=most, check=check
    )


_GSN = {
    **_placed(),
    "max_cycle": _largest(8, 8, "cycle"),
    "max_clique": _largest(0, 5, "clique"),
    "model": Key("Linear", "Network over the logarithms of the counts.", choices=ENCODING_MODELS["GSN"]),
    "layers": Key(3, "Layers of an MLP.", min=1),
    "raw_norm_type": Key("BatchNorm", "Normalisation of the logarithms.", choices=RAW_NORMS),
}

_RANDOM_ID = {
    **_placed(),
    "distribution": Key("gaussian", "Distribution of the identifiers.", choices=IDENTIFIER_DISTRIBUTIONS),
    "eval_seed": _eval_seed("identifiers"),
}

_GRAPHORMER_BIAS = {
    "enable": _ENABLE,
    "node_degrees_only": Key(False, "Degrees alone, without a bias of the attention."),
    "dim_pe": Key(0, "It takes no columns of the nodes.", min=0, max=0),
    "num_spatial_types": Key(
        None, "Distances that are told apart; longer ones count as the last.", type=int, min=2, optional=True
    ),
    "num_in_degrees": Key(None, "One more than the largest in-degree.", type=int, min=1, optional=True),
    "num_out_degrees": Key(None, "One more than the largest out-degree.", type=int, min=1, optional=True),
}

GROUPS: Groups = {
    "posenc_RPEARL": ("R-PEARL: Φ on random signals, averaged over the samples.", _RPEARL),
    "posenc_BPEARL": ("B-PEARL: Φ on the standard basis, summed over it.", _BPEARL),
    "posenc_LapPE": (
        "LapPE: eigenvectors of the Laplacian through a DeepSet or Transformer.",
        _LAPPE,
    ),
    "posenc_RWSE": ("RWSE: return probabilities of a random walk.", _RWSE),
    "posenc_SignNet": ("SignNet: eigenvectors of the Laplacian, invariant to their signs.", _SIGNNET),
    "posenc_SPE": (
        "SPE: eigenvalues and eigenvectors, stable and invariant to the choice of basis: ρ(V diag(φ(λ)) Vᵀ).",
        _SPE,
    ),
    "posenc_BasisNet": ("BasisNet: eigenspaces of the Laplacian, invariant to their bases.", _BASISNET),
    "posenc_EquivStableLapPE": (
        "EquivStableLapPE (PEG): distances between eigenvector rows weigh the edges of message passing.",
        {"enable": _ENABLE, "raw_norm_type": _RAW_NORM, **_eigen(fewest=1)},
    ),
    "posenc_GSN": ("GSN: counts of the cycles and cliques through every node.", _GSN),
    "posenc_GraphormerBias": (
        "GraphormerBias: degrees on the nodes, shortest paths as a bias of the attention.",
        _GRAPHORMER_BIAS,
    ),
    "posenc_RandomID": ("RandomID: random identifiers of the nodes.", _RANDOM_ID),
}
