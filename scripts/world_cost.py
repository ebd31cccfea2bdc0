#!/usr/bin/env python3
"""What contexts over several processes cost: rounds and bytes of a layer, the time over Gloo on this
machine, and a model of it on many GPUs. Prints the tables of docs/scale.md.

  scripts/world_cost.py [BUILD]             rounds and bytes, and the model
  scripts/world_cost.py --measure [BUILD]   the time over Gloo on this machine; --device cuda for that
                                            of processes that share a GPU
  scripts/world_cost.py --simulate [BUILD]  the model against rounds that are delayed as it says

BUILD has python/_ops.so and libqact_ops.so, build/ otherwise; without them, the installed package
and what QACT_LIBRARY names. Needs torch.
"""
import argparse
import math
import os
import pathlib
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
SETTINGS = (1e-5, 100, 100.0, 0.5, 0.5, 0)  # eps, levels, bound, positive_share, bandwidth, auto


def rounds_of(x):
    """The bytes of every round of the forward pass over x as one rank."""
    arguments = (x, None, None, None, None, *SETTINGS, 0, 1)
    rounds, out = torch.empty(0, dtype=torch.uint8), []
    while True:
        numbers = torch.ops.qact_world.next_round(*arguments, rounds)
        own = torch.cat([of.view(torch.uint8) for of in numbers])
        if own.numel() == 0:
            return out
        out.append(own.numel())
        rounds = torch.cat([rounds, own])


def rounds_of_normal(shape):
    """The bytes of all rounds of a step."""
    torch.manual_seed(1)
    return [*rounds_of(torch.randn(shape)), 32 * shape[1]]


def load(build):
    library = build / "python" / "_ops.so"
    if library.exists():
        torch.ops.load_library(str(library))
    else:
        import qact  # noqa: F401


def library_of(build):
    return os.environ.get("QACT_LIBRARY", str(build / "libqact_ops.so"))


def bytes_table():
    torch.manual_seed(1)
    inputs = {
        "normal": lambda shape: torch.randn(shape),
        "half zeros (after ReLU)": lambda shape: torch.randn(shape).relu(),
        "8 distinct values": lambda shape: torch.randint(8, shape).float(),
        "tails beyond 32 deviations": lambda shape: torch.randn(shape) ** 15,
    }
    print("| values per channel on all ranks | input | rounds forward | bytes per channel forward | "
          "of its largest round | rounds, bytes backward |\n|---|---|---|---|---|---|")
    channels = 4
    for n in (1000, 20000, 60000, 200000):
        for name, make in inputs.items():
            found = rounds_of(make((n // 100, channels, 100)))
            print(f"| {n:,} | {name} | {len(found)} | {sum(found) // channels:,} | "
                  f"{max(found) // channels:,} | 1, 32 |")


# --- a model

LAYERS = [(64, 32 * 32)] * 5 + [(128, 16 * 16)] * 4 + [(256, 8 * 8)] * 4 + [(512, 4 * 4)] * 4
PARAMETERS = 11_173_962
LATENCY = 10e-6  # seconds a hop


def histogram_bytes(n):
    bins = 2048 if n < 32768 else 4096
    return bins * (2 if n < 65536 else 4)


def sizes(channels, n, ranks):
    """The bytes of a layer's rounds where no bin is heavy, forward and then backward."""
    summary, backward = 248 * channels + 8 * ranks, 32 * channels
    if n <= 1024:
        return [summary, 4 * channels * n, backward]
    return [summary, histogram_bytes(n) * channels, backward]


def all_reduce(size, ranks, gbits):
    """A tree's latency and a ring's bandwidth."""
    return (2 * LATENCY * math.ceil(math.log2(ranks))
            + 2 * (ranks - 1) / ranks * size / (gbits * 1e9 / 8))


def step(layers, images, ranks, gbits, share, delays_of=None):
    """(seconds, bytes) of a training step's rounds; `share` of the channels is ranked over all.
    delays_of: of how many GPUs the network is, where that is not the number of ranks."""
    seconds = total = 0
    for channels, spatial in layers:
        channels = round(channels * share)
        of = sizes(channels, images * ranks * spatial, ranks)
        seconds += sum(all_reduce(size, delays_of or ranks, gbits) for size in of)
        total += sum(of)
    return seconds, total


def model_table(images=128):
    print("| GPUs | Gbit/s | all 17 layers | MB | first 5, half of the channels | MB | "
          "SyncBatchNorm, 17 layers | gradients |\n|---|---|---|---|---|---|---|---|")
    for ranks in (8, 64, 512, 4096):
        for gbits in (100, 400):
            everything = step(LAYERS, images, ranks, gbits, 1)
            some = step(LAYERS[:5], images, ranks, gbits, 0.5)
            norm = sum(all_reduce(12 * c, ranks, gbits) + all_reduce(8 * c, ranks, gbits)
                       for c, _ in LAYERS)
            gradients = all_reduce(4 * PARAMETERS, ranks, gbits)
            print(f"| {ranks:,} | {gbits} | {1e3 * everything[0]:.1f} ms | "
                  f"{everything[1] / 1e6:.1f} | {1e3 * some[0]:.1f} ms | {some[1] / 1e6:.2f} | "
                  f"{1e3 * norm:.1f} ms | {1e3 * gradients:.1f} ms |")


# --- a measurement

def refusal(call):
    """Why a call does not work here; none where it does."""
    try:
        call().sum().backward()
    except (RuntimeError, ValueError) as error:
        return str(error).splitlines()[0]


def measure_on(rank, ranks, library, repeats, device):
    """(shape, seconds forward and backward of each call, why SyncBatchNorm's is missing)"""
    import torch.distributed as dist
    torch.ops.load_library(library)

    def now():
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    out = []
    for shape in ((32, 64, 32, 32), (32, 256, 8, 8)):
        torch.manual_seed(rank)
        x = torch.randn(shape, device=device, requires_grad=True)
        vectors = [torch.ones(shape[1], device=device, requires_grad=True) for _ in range(4)]
        name = dist.group.WORLD.group_name
        calls = {
            "per rank": lambda: torch.ops.qact.quantile_layer(x, *vectors)[0],
            "over all": lambda: torch.ops.qact.quantile_layer_world(x, *vectors, group=name)[0],
        }
        why = None
        if device != "cpu":  # whose tensors SyncBatchNorm refuses
            norm = torch.nn.SyncBatchNorm(shape[1], device=device)
            calls["SyncBatchNorm"] = lambda: torch.relu(norm(x))
            why = refusal(calls["SyncBatchNorm"])
            if why:
                del calls["SyncBatchNorm"]
        best = {}
        for i in range(repeats):
            for what, call in calls.items():
                dist.barrier()
                start = now()
                y = call()
                middle = now()
                y.backward(x.detach())
                end = now()
                if i > 0:
                    old = best.get(what, (math.inf, math.inf))
                    best[what] = (min(old[0], middle - start), min(old[1], end - middle))
        out.append((shape, best, why))
    return out


def measured(build, device="cpu", repeats=15, all_ranks=(1, 2, 4)):
    """A row for every layer and number of ranks."""
    sys.path.append(str(ROOT / "tests" / "python"))
    import ranks as processes
    for ranks in all_ranks:
        first = processes.run(measure_on, ranks, library_of(build), repeats, device)[0]
        for shape, best, why in first:
            yield {"shape": list(shape), "ranks": ranks,
                   **{f"{part}_ms_{name}": round(1e3 * best[what][i], 4)
                      for i, part in enumerate(("forward", "backward"))
                      for what, name in (("per rank", "batch"), ("over all", "world"),
                                         ("SyncBatchNorm", "sync_batch_norm")) if what in best},
                   **({"sync_batch_norm": why} if why else {})}


def measure(build, device):
    print("| images x channels x places per rank | processes | forward per rank | over all | "
          "backward per rank | over all |\n|---|---|---|---|---|---|")
    for row in measured(build, device):
        cells = [f"{row[f'{part}_ms_{scope}']:.1f} ms" for part in ("forward", "backward")
                 for scope in ("batch", "world")]
        images, channels, *places = row["shape"]
        print(f"| {images} x {channels} x {math.prod(places)} | {row['ranks']} | "
              f"{' | '.join(cells)} |")


# --- the model against delays as it has them

NARROW = [(channels // 8, spatial) for channels, spatial in LAYERS]
SLOWER = 20  # times than the model's: to be seen above the rest


def delayed_on(rank, ranks, library, images, gpus, gbits, repeats):
    """(seconds of a step's layers without delays, with them, bytes of every round)."""
    import torch.distributed as dist
    sys.path.append(str(ROOT / "scripts"))
    from delaying_group import DelayingGroup
    torch.ops.load_library(library)
    slow = DelayingGroup(dist.group.WORLD, lambda size: SLOWER * all_reduce(size, gpus, gbits),
                         "slow")
    torch.manual_seed(rank)
    inputs = [torch.randn(images, channels, spatial, requires_grad=True)
              for channels, spatial in NARROW]

    def seconds(name):
        dist.barrier()
        start = time.perf_counter()
        for x in inputs:
            torch.ops.qact.quantile_layer_world(x, group=name)[0].backward(x.detach())
        return time.perf_counter() - start

    times = [(seconds(dist.group.WORLD.group_name), seconds("slow")) for _ in range(repeats)]
    return (*(min(column) for column in zip(*times)), slow.rounds[:len(slow.rounds) // repeats])


def simulate(build, images=32, repeats=3):
    """Two processes over Gloo, whose rounds take SLOWER times what they would among so many GPUs."""
    sys.path.append(str(ROOT / "tests" / "python"))
    import ranks as processes
    print("| GPUs | Gbit/s | rounds | model | MB | measured | MB |\n|---|---|---|---|---|---|---|")
    for gpus in (8, 512, 4096):
        for gbits in (1, 10, 100):
            plain, slow, found = processes.run(delayed_on, 2, library_of(build),
                                               images, gpus, gbits, repeats)[0]
            expected, size = step(NARROW, images, 2, gbits, 1, gpus)
            print(f"| {gpus:,} | {gbits} | {len(found)} | {1e3 * expected:.1f} ms | "
                  f"{size / 1e6:.2f} | {1e3 * (slow - plain) / SLOWER:.1f} ms | {sum(found) / 1e6:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.build.resolve(), arguments.device)
    if arguments.simulate:
        return simulate(arguments.build.resolve())
    load(arguments.build.resolve())
    bytes_table()
    print()
    model_table()


if __name__ == "__main__":
    main()
