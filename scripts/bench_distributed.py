"""Times a training step on 1, 2 and 4 ranks of this machine, over Gloo.

    python3 scripts/bench_distributed.py build/qact [--repeats 3]

Prints a table, and writes rows {"what": "distributed", ...} to BUILD/bench_distributed.json. The
shortest time of the repeats counts; the numbers of ranks take turns.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "dist"))
from ranks import run  # noqa: E402

RANKS = (1, 2, 4)
BATCH = 128
APART = ["--context-scope", "batch"]


def step_ms(program, folder, ranks, words):
    command = [program, "train", "--output", folder, "--data", "mnist-small", "--model", "lenet",
               "--batch-size", str(BATCH), "--threads", "1", "--workers", "1", "--epochs", "2", "--validation", "0",
               "--recalibrate", "off", "--fit-classifiers", "off", "--lr", "0.01", *words]
    if ranks == 1:
        subprocess.run(command, check=True, capture_output=True,
                       env=dict(os.environ, OMP_NUM_THREADS="1"))
    else:
        statuses, _, err = run(ranks, command)
        if any(statuses):
            sys.exit(err)
    last = json.loads((pathlib.Path(folder) / "train.jsonl").read_text().splitlines()[-1])
    return 1000 * BATCH / last["images_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    networks = {"lenet, BatchNorm and ReLU per rank": ["--activation", "relu", *APART],
                "lenet, QAct, contexts per rank": ["--activation", "qact", *APART],
                "lenet, QAct, contexts of all ranks": ["--activation", "qact"]}
    times = {}
    for _ in range(options.repeats):
        for name, words in networks.items():
            for ranks in RANKS:
                with tempfile.TemporaryDirectory() as scratch:
                    time = step_ms(options.program, f"{scratch}/run", ranks, words)
                times[name, ranks] = min(time, times.get((name, ranks), time))
    rows = []
    print(f"A step of {BATCH} images, ms, on {os.cpu_count()} cores, one thread a rank\n")
    print("| network | " + " | ".join(f"{r} rank{'s' * (r > 1)}" for r in RANKS) + " |")
    print("|---|" + "---:|" * len(RANKS))
    for name in networks:
        print(f"| {name} | " + " | ".join(f"{times[name, r]:.1f}" for r in RANKS) + " |")
        rows += [{"what": "distributed", "device": "cpu", "backend": "gloo", "network": name,
                  "batch": BATCH, "ranks": r, "step_ms": round(times[name, r], 3),
                  "ratio": round(times[name, r] / times[name, 1], 4)} for r in RANKS]
    out = pathlib.Path(options.program).resolve().parent / "bench_distributed.json"
    out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
