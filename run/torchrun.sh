#!/usr/bin/env bash
# Train with several processes on this machine: ./run/torchrun.sh N --cfg configs/FILE.yaml [KEY VALUE ...]
# N processes share every batch (train.batch_size counts the graphs of all of them) and give what one would give.
# Several machines, SLURM: docs/scaling.md.
set -euo pipefail

if [ $# -lt 3 ] || ! [[ $1 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 N --cfg configs/FILE.yaml [KEY VALUE ...]" >&2
    exit 2
fi
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

processes=$1
shift
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "$PYTHON" -m torch.distributed.run --standalone --nproc_per_node "$processes" main.py "$@"
