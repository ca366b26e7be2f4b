#!/usr/bin/env bash
# Compare the encoders on a benchmark, four seeds each, against no encoding:  ./run/experiments.sh zinc
# More words go to every run:  ./run/experiments.sh drugood dataset.name lbap_core_ec50_size optim.max_epoch 50
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_environment.sh"

dataset=${1:?give zinc, peptides, peptides-func or drugood}
shift
if [ ! -f "configs/$dataset-none.yaml" ]; then
    echo "error: there is no configs/$dataset-none.yaml; give zinc, peptides, peptides-func or drugood" >&2
    exit 2
fi
files=()
for encoder in none none-wide lappe-8s rwse signnet-8s spe-8s rpearl bpearl; do
    files+=("configs/$dataset-$encoder.yaml")
done
"$PYTHON" -m graphgps_pearl compare "${files[@]}" --seeds "${SEEDS:-4}" \
    --baseline "$dataset-none" "$@"
