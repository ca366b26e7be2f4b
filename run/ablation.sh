#!/usr/bin/env bash
# Train a config once for every value of a key, then compare:
#   ./run/ablation.sh configs/zinc-bpearl.yaml posenc_BPEARL.num_taps 1 2 4 12
#   ./run/ablation.sh configs/zinc-bpearl.yaml posenc_BPEARL.num_layers 3 5 7 9
#   ./run/ablation.sh configs/zinc-rpearl.yaml posenc_RPEARL.num_samples 20 50 120
# SEEDS=4 trains four seeds of each.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

config=${1:?give a config, a key and its values}
key=${2:?give a key and its values}
shift 2
name=$(basename "$config" .yaml)
names=()
for value in "$@"; do
    tag="${key##*.}-$value"
    "$PYTHON" main.py --cfg "$config" --repeat "${SEEDS:-1}" "$key" "$value" name_tag "$tag"
    names+=("$name-$tag")
done
"$PYTHON" -m graphgps_pearl report results "${names[@]}"
