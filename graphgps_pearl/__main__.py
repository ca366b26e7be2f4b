"""``python -m graphgps_pearl COMMAND ...``."""

import sys

from graphgps_pearl.cli import main

if __name__ == "__main__":
    sys.exit(main())
