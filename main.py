"""Train a graph transformer.

python main.py --cfg configs/FILE.yaml [--repeat N] [--overwrite] [KEY VALUE ...]
"""

import sys

from graphgps_pearl.cli import train

if __name__ == "__main__":
    sys.exit(train())
