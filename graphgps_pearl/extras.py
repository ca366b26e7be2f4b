"""What an optional extra brings, and one line that names the extra where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphgps_pearl.errors import MissingExtraError

#: Modules of ``graphgps_pearl[train]``; all of its commands need it.
TRAIN = {
    *("lightning", "torchmetrics", "tensorboard", "yacs", "ogb", "rdkit"),
    *("safetensors", "matplotlib", "pooch", "scipy", "sklearn", "networkx", "numpy", "yaml", "tqdm"),
}


@contextmanager
def named_extras() -> Iterator[None]:
    """Turn the failed import of an extra's module into :class:`MissingExtraError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in TRAIN:
            raise
        raise MissingExtraError(f"{module} is not installed: pip install 'graphgps_pearl[train]'") from error
