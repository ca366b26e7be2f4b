"""Fine-tuning in upstream GraphGPS."""

from __future__ import annotations

from graphgps_pearl.config.key import Key


def _unsupported(folder: str) -> str | None:
    return "starting from upstream's checkpoints is not supported; expected an empty text" if folder else None


KEYS = {
    # Refused rather than ignored: a run from scratch would pass for a fine-tuned one.
    "dir": Key("", "Folder of a pretrained model; must be empty.", check=_unsupported, used=False),
    "reset_prediction_head": Key(True, "Start the head afresh.", used=False),
    "freeze_main": Key(False, "Train the head only.", used=False),
}
