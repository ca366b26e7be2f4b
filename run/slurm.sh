#!/usr/bin/env bash
#SBATCH --job-name=graphgps_pearl
#SBATCH --cpus-per-task=4
#SBATCH --time=24:00:00
#SBATCH --requeue
# One job a seed:  sbatch --array=0-3 run/slurm.sh configs/zinc-bpearl.yaml [KEY VALUE ...]
# A job that was killed, requeued (after a preemption or a failed node) or submitted again (after a time limit) continues its run.
# Afterwards: graphgps-pearl report results
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"

config=${1:?give a config}
shift
exec .venv/bin/python main.py --cfg "$config" "$@" seed "${SLURM_ARRAY_TASK_ID:-0}"
