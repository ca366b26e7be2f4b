#!/usr/bin/env bash
# Compare the encoders on a benchmark against no encoding, four seeds each:  ./run/experiments.sh zinc
# CSL and REDDIT are run once for each of their folds, which take the place of seeds:  ./run/experiments.sh csl
# More words go to every run:  ./run/experiments.sh drugood dataset.name lbap_core_ec50_size optim.max_epoch 50
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

choices="zinc, peptides, peptides-func, drugood, csl, reddit-b or reddit-m"
dataset=${1:?give $choices}
shift
if [ ! -f "configs/$dataset-none.yaml" ]; then
    echo "error: there is no configs/$dataset-none.yaml; give $choices" >&2
    exit 2
fi
case "$dataset" in
    csl) encoders="none rpearl bpearl" ;;
    reddit-*) encoders="none randomid signnet-8s rpearl" ;;
    *) encoders="none none-wide lappe-8s rwse signnet-8s spe-8s rpearl bpearl" ;;
esac
case "$dataset" in csl | reddit-*) seeds=1 ;; *) seeds=${SEEDS:-4} ;; esac
files=()
for encoder in $encoders; do
    files+=("configs/$dataset-$encoder.yaml")
done
"$PYTHON" -m graphgps_pearl compare "${files[@]}" --seeds "$seeds" --baseline "$dataset-none" "$@"
