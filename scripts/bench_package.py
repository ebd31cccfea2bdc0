"""Times the Python package's calls, Python included, and adds rows to bench.json.

    python scripts/bench_package.py BENCH_JSON [LIBQACT_OPS_SO]

Two comparisons at small shapes, where the call costs more than the arithmetic: inference in the
running context against eager BatchNorm2d in eval() and ReLU; and, with the C++ library, the fused
layer against its operator, forward and with the backward pass. Each pair is timed in turn, in many
short rounds, of which the fastest counts.
"""

import json
import pathlib
import sys
import time

import torch
from torch import nn

import qact

SHAPES = [(8, 16, 4, 4), (32, 64, 8, 8)]
ROUNDS, SECONDS = 600, 0.002  # short ones, so that on a busy machine some are undisturbed


def fastest(*functions):
    """Milliseconds of each, the rounds of all in turn."""
    best, counts = [], []
    for function in functions:
        start = time.perf_counter()
        for _ in range(10):
            function()
        counts.append(max(1, int(SECONDS / ((time.perf_counter() - start) / 10))))
        best.append(float("inf"))
    for _ in range(ROUNDS):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(counts[i]):
                function()
            best[i] = min(best[i], (time.perf_counter() - start) / counts[i] * 1e3)
    return best


def row(what, shape, direction, peer, ours, theirs):
    found = {"what": what, "device": "cpu", "shape": list(shape), "dtype": "float32",
             "layout": "contiguous", "pass": direction, "threads": torch.get_num_threads(),
             "qact_ms": ours, "peer": peer, "peer_ms": theirs, "ratio": ours / theirs}
    print(f"{what:16} {str(shape):16} {direction:8} {ours * 1e3:9.1f} us  {peer:22} "
          f"{theirs * 1e3:9.1f} us  ratio {found['ratio']:.2f}")
    return found


def inference(shape):
    x = torch.randn(shape)
    layer = qact.QuantileActivation2d(shape[1])
    layer(x)
    layer.eval()
    norm, relu = nn.BatchNorm2d(shape[1]).eval(), nn.ReLU()
    with torch.no_grad():
        expected = qact.functional.quantile_apply(
            x, qact.functional.context_quantiles(layer.context), *_folded(layer))
        torch.testing.assert_close(layer(x), expected)  # validate, then time
        times = fastest(lambda: layer(x), lambda: relu(norm(x)))
    return row("package tracked", shape, "forward", "eager BatchNorm+ReLU", *times)


def _folded(layer):
    scale = torch.rsqrt(layer.running_var_in + layer.eps)
    out = torch.rsqrt(layer.running_var_out + layer.eps)
    return scale, -layer.running_mean_in * scale, out, -layer.running_mean_out * out


def training(shape, cpp):
    x = torch.randn(shape, requires_grad=True)
    vectors = [torch.full((shape[1],), value, requires_grad=True) for value in (1.0, 0.0, 1.0, 0.0)]
    grad = torch.randn(shape)

    def ours():
        return qact.functional.quantile_layer(x, *vectors)[0]

    def theirs():
        return cpp(x, *vectors)[0]

    assert torch.equal(ours(), theirs())
    yield row("package layer", shape, "forward", "C++ operator", *fastest(ours, theirs))
    yield row("package layer", shape, "both", "C++ operator", *fastest(
        lambda: ours().backward(grad), lambda: theirs().backward(grad)))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rows = [inference(shape) for shape in SHAPES]
    if len(sys.argv) == 3:
        torch.ops.load_library(sys.argv[2])
        for shape in SHAPES:
            rows += training(shape, torch.ops.qact.quantile_layer)
    path = pathlib.Path(sys.argv[1])
    kept = json.loads(path.read_text()) if path.exists() else []
    kept = [r for r in kept if not r["what"].startswith("package ")]
    path.write_text(json.dumps(kept + rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
