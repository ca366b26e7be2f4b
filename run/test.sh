#!/usr/bin/env bash
# Set up .venv, then lint, types and the fast test suite. Arguments go to pytest: ./run/test.sh -m slow
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

"$PYTHON" -m ruff check .
"$PYTHON" -m ruff format --check .
"$PYTHON" -m mypy
if [ $# -eq 0 ]; then
    set -- -m "not slow" -n 2
    # The plain paths first: what the kernels are compared with.
    GRAPHGPS_PEARL_KERNELS=0 OMP_NUM_THREADS=1 "$PYTHON" -m pytest "$@" tests/layers tests/networks tests/encoders
fi
# One thread a process: the two pytest workers share two cores.
OMP_NUM_THREADS=1 "$PYTHON" -m pytest "$@"
