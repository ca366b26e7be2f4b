"""LapPE: eigenvectors of the Laplacian through a DeepSet or Transformer."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import eigen, network, placed

KEYS = {**placed(), **network(("DeepSet", "Transformer")), **eigen(fewest=0)}
