"""OGB's own features of atoms and bonds, imported without a question to the network."""

from __future__ import annotations

import sys
from typing import Any


def ogb_features() -> Any:
    """The module ``ogb.utils.features``.

    Importing ogb starts a thread that asks PyPI for a newer version, with the package ``outdated``. That
    import is made to fail, which ogb allows for: nothing here uses the network unasked.
    """
    if "ogb" not in sys.modules and "outdated" not in sys.modules:
        sys.modules["outdated"] = None  # type: ignore[assignment]  # what makes an import fail
        try:
            import ogb  # noqa: F401
        finally:
            del sys.modules["outdated"]
    from ogb.utils import features

    return features
