#!/usr/bin/env bash
# The paper's ablations on ZINC, with its own network:
#   ./run/ablation.sh taps | layers | samples | backbone | parameters  [KEY VALUE ...]
# What B-PEARL gains from taps, its diagonal and its pairs, in GPS:
#   SEEDS=2 ./run/ablation.sh pairs optim.max_epoch 30 optim.num_warmup_epochs 3
# (The tables of docs/notes/results.md have posenc_BPEARL.num_layers 4 posenc_BPEARL.scale False in addition.)
# Or any config, once for every value of a key:
#   ./run/ablation.sh configs/zinc-bpearl.yaml posenc_BPEARL.num_layers 3 5 7 9 [-- KEY VALUE ...]
# SEEDS=4 trains four seeds of each, except for samples. The samples ablation trains one model and evaluates it with other numbers of
# samples. Everything continues where it was when it is started again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

seeds=${SEEDS:-1}
words=()
names=()
out_dir=results
tag=
seed=0

# train CONFIG TAG KEY VALUE...: train it so
train() {
    "$PYTHON" main.py --cfg "$1" --repeat "$seeds" "${words[@]}" "${@:3}" name_tag "$2"
    names+=("$(basename "$1" .yaml)-$2")
}

# each CONFIG KEY VALUE...: train it with every value
each() {
    local value
    for value in "${@:3}"; do
        train "$1" "${2##*.}-$value" "$2" "$value"
    done
}

what=${1:?give taps, layers, samples, backbone, parameters, pairs, or a config, a key and its values}
shift
swept=()
if [[ $what == *.yaml ]]; then
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        swept+=("$1")
        shift
    done
    shift $(($# > 0))
fi
words=("$@")
for ((i = 0; i + 1 < ${#words[@]}; i += 2)); do
    case "${words[i]}" in
        out_dir) out_dir=${words[i + 1]} ;;
        name_tag) tag=-${words[i + 1]} ;;
        seed) seed=${words[i + 1]} ;;
    esac
done

case "$what" in
    *.yaml)
        each "$what" "${swept[@]}"
        ;;
    taps)
        each configs/zinc-bpearl-gine-644k.yaml posenc_BPEARL.num_taps 1 2 4 12
        each configs/zinc-rpearl-gine-644k.yaml posenc_RPEARL.num_taps 1 2 4 12
        ;;
    layers)
        each configs/zinc-bpearl-gine-644k.yaml posenc_BPEARL.num_layers 3 5 7 9
        ;;
    samples)
        "$PYTHON" main.py --cfg configs/zinc-rpearl-gine-644k.yaml "${words[@]}"
        "$PYTHON" -m graphgps_pearl evaluate-samples "$out_dir/zinc-rpearl-gine-644k$tag/$seed"
        ;;
    backbone)
        "$PYTHON" -m graphgps_pearl compare configs/zinc-{b,r}pearl-{gine-487k,gatedgcn,pna}.yaml --seeds "$seeds" "${words[@]}"
        ;;
    parameters)
        "$PYTHON" -m graphgps_pearl compare configs/zinc-{b,r}pearl-gine-{487k,644k}.yaml --seeds "$seeds" "${words[@]}"
        ;;
    pairs)
        config=configs/zinc-bpearl.yaml
        for gso in sym_laplacian random_walk; do
            for taps in 1 8 20; do
                for pool in sum sum+self; do
                    train "$config" "$gso-$taps-${pool/+/-}" posenc_BPEARL.gso "$gso" posenc_BPEARL.num_taps "$taps" \
                        posenc_BPEARL.pool "$pool" posenc_BPEARL.tap_diagonal False \
                        posenc_BPEARL.pair_bias none posenc_BPEARL.pair_edges False
                done
            done
        done
        each "$config" posenc_BPEARL.pair_bias none shared per_layer
        each "$config" posenc_BPEARL.pair_edges False
        train "$config" no-pairs posenc_BPEARL.pair_bias none posenc_BPEARL.pair_edges False
        each "$config" posenc_BPEARL.tap_diagonal False
        each "$config" posenc_BPEARL.num_layers 3 6
        train "$config" one-map posenc_BPEARL.num_layers 6 posenc_BPEARL.mlp_layers 1
        ;;
    *)
        echo "error: $what: give taps, layers, samples, backbone, parameters, pairs, or a config, a key and its values" >&2
        exit 2
        ;;
esac
if [ ${#names[@]} -gt 0 ]; then
    "$PYTHON" -m graphgps_pearl report "$out_dir" "${names[@]}"
fi
