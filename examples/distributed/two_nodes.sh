#!/usr/bin/env bash
# The same command on each of two machines, which both see the folder of the run:
#   examples/distributed/two_nodes.sh FIRST_MACHINE runs/many
# Trains on all of their GPUs, or on CPUS processes of each one's cores. FIRST_MACHINE listens on PORT.
set -euo pipefail
first=$1 run=$2
if [ -n "${CPUS:-}" ]; then
  ranks=$CPUS device=cpu
else
  ranks=gpu device=cuda
fi
# Without this a machine that ends, and begins anew by the same command, is not taken back: torchrun's
# agents go on only with those that they began with.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
exec torchrun --nnodes 2 --nproc-per-node "$ranks" --max-restarts 3 \
  --rdzv-backend c10d --rdzv-endpoint "$first:${PORT:-29400}" --rdzv-id "$(basename "$run")" \
  --no-python "${QACT:-build/qact}" train --output "$run" \
  --config "${RECIPE:-recipes/quick.toml}" --device "$device"
