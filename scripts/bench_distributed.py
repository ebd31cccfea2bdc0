"""Times training steps and layers on 1, 2 and 4 ranks of this machine, over Gloo.

    python3 scripts/bench_distributed.py build [--repeats 2] [--device cuda]

Prints tables, and puts rows {"what": "distributed", ...} into BUILD/bench.json: of steps of `qact
train`, and of single layers with the bytes that a step sends for them. The shortest time of the
repeats counts; the numbers of ranks take turns. With --device cuda all ranks share one GPU, and
torch's SyncBatchNorm with ReLU is timed beside the layers. Needs torch.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import world_cost  # noqa: E402


def _program_ranks():
    """tests/dist/ranks.py, which starts programs; tests/python has another of the name."""
    spec = importlib.util.spec_from_file_location("program_ranks", ROOT / "tests/dist/ranks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = _program_ranks().run

RANKS = (1, 2, 4)
BATCH = 128
APART = ["--context-scope", "batch"]
KIND = {"what": "distributed", "backend": "gloo"}


def see_one_gpu():
    """Of those that this process may use."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    os.environ["CUDA_VISIBLE_DEVICES"] = seen.split(",")[0]


def place(device):
    if device == "cpu":
        return f"{os.cpu_count()} cores, one thread a rank"
    return f"one {torch.cuda.get_device_name()} that the ranks share"


def step_ms(program, folder, ranks, words):
    command = [program, "train", "--output", folder, "--data", "mnist-small", "--model", "lenet",
               "--batch-size", str(BATCH), "--threads", "1", "--workers", "1", "--epochs", "1",
               "--validation", "0", "--recalibrate", "off", "--fit-classifiers", "off",
               "--lr", "0.01", *words]
    if ranks == 1:
        subprocess.run(command, check=True, capture_output=True,
                       env=dict(os.environ, OMP_NUM_THREADS="1"))
    else:
        statuses, _, err = run(ranks, command)
        if any(statuses):
            sys.exit(err)
    last = json.loads((pathlib.Path(folder) / "train.jsonl").read_text().splitlines()[-1])
    return 1000 * BATCH / last["images_per_s"]


def steps(program, device, repeats):
    networks = {"lenet, BatchNorm and ReLU per rank": ["--activation", "relu", *APART],
                "lenet, QAct, contexts per rank": ["--activation", "qact", *APART],
                "lenet, QAct, contexts of all ranks": ["--activation", "qact"]}
    times = {}
    for _ in range(repeats):
        for name, words in networks.items():
            for ranks in RANKS:
                with tempfile.TemporaryDirectory() as scratch:
                    time = step_ms(program, f"{scratch}/run", ranks, [*words, "--device", device])
                times[name, ranks] = min(time, times.get((name, ranks), time))
    print(f"A step of {BATCH} images, ms, on {place(device)}\n")
    print("| network | " + " | ".join(f"{r} rank{'s' * (r > 1)}" for r in RANKS) + " |")
    print("|---|" + "---:|" * len(RANKS))
    for name in networks:
        print(f"| {name} | " + " | ".join(f"{times[name, r]:.1f}" for r in RANKS) + " |")
    return [{**KIND, "device": device, "network": name, "batch": BATCH, "ranks": r,
             "step_ms": round(time, 3), "ratio": round(time / times[name, 1], 4)}
            for (name, r), time in times.items()]


def layers(build, device):
    world_cost.load(build)
    beside = device != "cpu"
    print(f"\nA layer, ms, in contexts of each rank and of all, on {place(device)}\n")
    print("| per rank | ranks | forward | of all | backward | of all | rounds | bytes a step |"
          + " SyncBatchNorm and ReLU: forward | backward |" * beside)
    print("|---|" + "---:|" * (9 if beside else 7))
    for row in world_cost.measured(build, device):
        images, *inner = row["shape"]
        rounds = world_cost.rounds_of_normal((images * row["ranks"], *inner))
        row = {**KIND, "device": device, **row, "rounds": len(rounds), "bytes": sum(rounds)}
        cells = [f"{row[f'{part}_ms_{scope}']:.2f}" for part in ("forward", "backward")
                 for scope in ("batch", "world")]
        cells += [row["rounds"], f"{row['bytes']:,}"]
        if "sync_batch_norm" in row:
            cells += [f"refused: {row['sync_batch_norm']}", ""]
        elif beside:
            cells += [f"{row[f'{part}_ms_sync_batch_norm']:.2f}"
                      for part in ("forward", "backward")]
        print(f"| {' x '.join(map(str, row['shape']))} | {row['ranks']} | "
              + " | ".join(map(str, cells)) + " |", flush=True)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    build = options.build.resolve()
    if options.device == "cuda":
        see_one_gpu()
    rows = [*steps(str(build / "qact"), options.device, options.repeats),
            *layers(build, options.device)]
    out = build / "bench.json"
    kept = json.loads(out.read_text()) if out.exists() else []
    kept = [row for row in kept
            if (row["what"], row.get("device")) != (KIND["what"], options.device)]
    out.write_text(json.dumps(kept + rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
