#!/usr/bin/env bash
# Trains on all GPUs of one machine, or on CPUS processes of its cores, and evaluates the run.
#   examples/distributed/one_node.sh runs/many
set -euo pipefail
run=$1
program=${QACT:-build/qact}
if [ -n "${CPUS:-}" ]; then
  ranks=$CPUS device=cpu
else
  ranks=gpu device=cuda
fi
start=(torchrun --standalone --nproc-per-node "$ranks" --max-restarts 3 --no-python "$program")

"${start[@]}" train --output "$run" --config "${RECIPE:-recipes/quick.toml}" --device "$device"
"${start[@]}" eval "$run" --device "$device"
