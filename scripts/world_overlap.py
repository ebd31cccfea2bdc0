#!/usr/bin/env python3
"""What it saves to rank channels in their image while the other channels are being reduced: passes
of a layer over two processes whose rounds are late, half of its channels ranked in their image, and
of its halves one after the other, in turn. Prints a table of docs/scale.md.

  scripts/world_overlap.py [BUILD]

BUILD has libqact_ops.so, build/ otherwise. Needs torch.
"""
import argparse
import math
import pathlib
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = ((32, 64, 32, 32), (32, 256, 8, 8))
DELAYS = (0, 1, 5)  # milliseconds a round


def overlapping(x, vectors, group):
    return torch.ops.qact.quantile_layer_world(
        x, *vectors, image_channels=x.shape[1] // 2, group=group)[0]


def in_images(x, vectors, group):
    half = x.shape[1] // 2
    return torch.ops.qact.quantile_layer(
        x[:, :half], *(v[:half] for v in vectors), image_channels=half)[0]


def one_by_one(x, vectors, group):
    half = x.shape[1] // 2
    others = torch.ops.qact.quantile_layer_world(
        x[:, half:], *(v[half:] for v in vectors), group=group)[0]
    return torch.cat([in_images(x, vectors, group), others], 1)


LAYERS = (one_by_one, overlapping, in_images)


def step(layer, x, vectors, grad, group):
    """Seconds forward and backward, and what came out."""
    x, *vectors = (tensor.detach().requires_grad_() for tensor in (x, *vectors))
    start = time.perf_counter()
    y = layer(x, vectors, group)
    middle = time.perf_counter()
    y.backward(grad[:, :y.shape[1]])
    end = time.perf_counter()
    return middle - start, end - middle, [y.detach(), x.grad, *(v.grad for v in vectors)]


def on_each_rank(rank, ranks, library, shapes, repeats):
    """{(shape, delay, layer): the shortest milliseconds forward and backward}"""
    import torch.distributed as dist
    sys.path.append(str(ROOT / "scripts"))
    from delaying_group import DelayingGroup
    torch.ops.load_library(library)
    late = [DelayingGroup(dist.group.WORLD, lambda size, delay=delay: delay / 1e3, f"late {delay}")
            for delay in DELAYS]
    out = {}
    for shape in shapes:
        vectors = [torch.linspace(0.5, 1.5, shape[1]) for _ in range(4)]  # the same on all ranks
        torch.manual_seed(rank)
        x, grad = torch.randn(shape), torch.randn(shape)
        for delay in DELAYS:
            for i in range(repeats + 1):
                found = []
                for layer in LAYERS:
                    dist.barrier()
                    *seconds, results = step(layer, x, vectors, grad, f"late {delay}")
                    found.append(results)
                    key = (shape, delay, layer.__name__)
                    best = out.get(key, (math.inf, math.inf))
                    if i > 0:
                        out[key] = tuple(min(a, 1e3 * b) for a, b in zip(best, seconds))
                assert all(torch.equal(a, b) for a, b in zip(*found[:2]))
    del late  # until now: a group's name goes with it
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--repeats", type=int, default=40)
    arguments = parser.parse_args()
    sys.path += [str(ROOT / "tests" / "python"), str(ROOT / "scripts")]
    import ranks as processes
    from world_cost import library_of
    found = processes.run(on_each_rank, 2, library_of(arguments.build.resolve()), SHAPES,
                          arguments.repeats)[0]
    print("| images x channels x places per rank | a round takes at least | forward, one by one | "
          "overlapping | in images alone | backward, one by one | overlapping | in images alone |\n"
          "|---|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        images, channels, *places = shape
        for delay in DELAYS:
            cells = [f"{found[shape, delay, layer.__name__][part]:.1f} ms"
                     for part in (0, 1) for layer in LAYERS]
            print(f"| {images} x {channels} x {math.prod(places)} | {delay} ms | "
                  f"{' | '.join(cells)} |")


if __name__ == "__main__":
    main()
