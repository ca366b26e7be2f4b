#!/usr/bin/env bash
# Set up .venv and train GPS with B-PEARL on embedded molecules: no download. After the installation it takes
# about a minute and a half on two cores.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

"$PYTHON" main.py --cfg configs/quickstart.yaml "$@"
echo
echo "To look at the curves:  .venv/bin/tensorboard --logdir results --host localhost   (then open http://localhost:6006)"
