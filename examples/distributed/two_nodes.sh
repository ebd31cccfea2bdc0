#!/usr/bin/env bash
# The same command on each of two machines, which both see the folder of the run:
#   examples/distributed/two_nodes.sh FIRST_MACHINE runs/many
set -euo pipefail
first=$1 run=$2
torchrun --nnodes 2 --nproc-per-node gpu --max-restarts 3 \
  --rdzv-backend c10d --rdzv-endpoint "$first:29400" --rdzv-id "$(basename "$run")" \
  --no-python "${QACT:-build/qact}" train --output "$run" \
  --config "${RECIPE:-recipes/quick.toml}" --device cuda
