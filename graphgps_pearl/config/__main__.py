"""``python -m graphgps_pearl.config`` writes the reference of all keys to standard output."""

import sys

from graphgps_pearl.config.document import document

sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # whatever the terminal's encoding
sys.stdout.write(document())
