"""R-PEARL: Φ on random signals, averaged over the samples."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import phi, placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(),
    **phi(pool="mean"),
    "num_samples": Key(50, "Samples M.", min=1),
    "law": Key(
        "gaussian",
        "Law of the samples; sobol = Gaussian from a scrambled Sobol sequence.",
        choices=("gaussian", "rademacher", "two_point", "sobol"),
    ),
    "chunk_size": Key(
        0,
        "Samples that go through Φ at once, to bound the memory (training: norm layer or none); 0 = all.",
        min=0,
    ),
    "eval_seed": Key(0, "Seed of the table of samples used in evaluation.", min=0, max=2**31 - 1),
    "num_tables": Key(1, "Tables of samples averaged in evaluation.", min=1),
}
