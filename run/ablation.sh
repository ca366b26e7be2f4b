#!/usr/bin/env bash
# The paper's ablations on ZINC, with its own network:
#   ./run/ablation.sh taps | layers | samples | backbone | parameters  [KEY VALUE ...]
# Or any config, once for every value of a key:
#   ./run/ablation.sh configs/zinc-bpearl.yaml posenc_BPEARL.num_layers 3 5 7 9
# SEEDS=4 trains four seeds of each. The samples ablation trains one model and evaluates it with other numbers of
# samples. Everything continues where it was when it is started again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

seeds=${SEEDS:-1}
words=()
names=()

# each CONFIG KEY VALUE...: train it with every value
each() {
    local config=$1 key=$2 value tag
    for value in "${@:3}"; do
        tag="${key##*.}-$value"
        "$PYTHON" main.py --cfg "$config" --repeat "$seeds" "${words[@]}" "$key" "$value" name_tag "$tag"
        names+=("$(basename "$config" .yaml)-$tag")
    done
}

what=${1:?give taps, layers, samples, backbone, parameters, or a config, a key and its values}
shift
case "$what" in
    *.yaml)
        each "$what" "$@"
        ;;
    taps)
        words=("$@")
        each configs/zinc-bpearl-gine-644k.yaml posenc_BPEARL.num_taps 1 2 4 12
        each configs/zinc-rpearl-gine-644k.yaml posenc_RPEARL.num_taps 1 2 4 12
        ;;
    layers)
        words=("$@")
        each configs/zinc-bpearl-gine-644k.yaml posenc_BPEARL.num_layers 3 5 7 9
        ;;
    samples)
        "$PYTHON" main.py --cfg configs/zinc-rpearl-gine-644k.yaml "$@"
        "$PYTHON" -m graphgps_pearl evaluate-samples results/zinc-rpearl-gine-644k/0
        ;;
    backbone)
        "$PYTHON" -m graphgps_pearl compare configs/zinc-{b,r}pearl-{gine-487k,gatedgcn,pna}.yaml --seeds "$seeds" "$@"
        ;;
    parameters)
        "$PYTHON" -m graphgps_pearl compare configs/zinc-{b,r}pearl-gine-{487k,644k}.yaml --seeds "$seeds" "$@"
        ;;
    *)
        echo "error: $what: give taps, layers, samples, backbone, parameters, or a config, a key and its values" >&2
        exit 2
        ;;
esac
if [ ${#names[@]} -gt 0 ]; then
    "$PYTHON" -m graphgps_pearl report results "${names[@]}"
fi
