#!/usr/bin/env bash
# Set up .venv, then lint, types and the fast test suite. Arguments go to pytest: ./run/test.sh -m slow
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

"$PYTHON" -m ruff check .
"$PYTHON" -m ruff format --check .
"$PYTHON" -m mypy
# One thread a process: the two pytest workers share two cores.
export OMP_NUM_THREADS=1
if [ $# -gt 0 ]; then
    exec "$PYTHON" -m pytest "$@"
fi
"$PYTHON" -m pytest -m "not slow" -n 2
# The mathematics again, without the optional kernels.
GRAPHGPS_PEARL_KERNELS=0 "$PYTHON" -m pytest -m "not slow" -n 2 --ignore tests/pearl/kernels \
    tests/pearl tests/layers tests/networks tests/encoders
