"""Times the Python package's calls, Python included, and adds rows to bench.json.

    python scripts/bench_package.py BENCH_JSON [LIBQACT_OPS_SO]

At small shapes, where the call costs more than the arithmetic: a module of the package next to
F.relu(F.batch_norm(...)), eager, which has no module around it. In eval(), in the running context,
where the modules BatchNorm2d and ReLU are timed, too, and in training, forward and with the
backward pass; on a GPU, too, where there is one. With the C++ library, the fused layer next to its
operator. Each is timed in turn, in many short rounds, of which the fastest counts.
QACT_CPP_AUTOGRAD=off times the package as other releases of torch have it.
"""

import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import qact
from qact._library import CPP_AUTOGRAD_MISSING, CUDA_MISSING

SHAPES = [(8, 16, 4, 4), (32, 64, 8, 8)]
BASELINE = "F.batch_norm+F.relu"
ROUNDS, SECONDS = 600, 0.002  # short ones, so that on a busy machine some are undisturbed


def fastest(*functions):
    """Milliseconds of each, the rounds of all in turn."""
    best, counts = [], []
    for function in functions:
        seconds(function, 10)
        counts.append(max(1, int(SECONDS / (seconds(function, 10) / 10))))
        best.append(float("inf"))
    for _ in range(ROUNDS):
        for i, function in enumerate(functions):
            best[i] = min(best[i], seconds(function, counts[i]) / counts[i] * 1e3)
    return best


def seconds(function, times):
    """Until the GPU is done, too."""
    start = time.perf_counter()
    for _ in range(times):
        function()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def row(what, device, shape, direction, peer, ours, theirs):
    found = {"what": what, "device": device, "shape": list(shape), "dtype": "float32",
             "layout": "contiguous", "pass": direction, "threads": torch.get_num_threads(),
             "qact_ms": ours, "peer": peer, "peer_ms": theirs, "ratio": ours / theirs}
    print(f"{what:16} {device:5} {str(shape):16} {direction:8} {ours * 1e3:9.1f} us  {peer:22} "
          f"{theirs * 1e3:9.1f} us  ratio {found['ratio']:.2f}")
    return found


def baseline(x, layer):
    """BatchNorm and ReLU with the layer's inner parameters and statistics of their own."""
    mean, var = layer.running_mean_in.clone(), layer.running_var_in.clone()
    weight, bias = (p.detach().clone().requires_grad_() for p in (layer.weight_in, layer.bias_in))
    return lambda: F.relu(F.batch_norm(x, mean, var, weight, bias, layer.training, 0.1, layer.eps))


def inference(device, shape):
    x = torch.randn(shape, device=device)
    layer = qact.QuantileActivation2d(shape[1], device=device)
    layer(x)
    layer.eval()
    with torch.no_grad():
        expected = qact.functional.quantile_apply(
            x, qact.functional.context_quantiles(layer.context), *_folded(layer))
        torch.testing.assert_close(layer(x), expected)  # validate, then time
        norm, relu = nn.BatchNorm2d(shape[1], device=device).eval(), nn.ReLU()
        ours, functions, modules = fastest(lambda: layer(x), baseline(x, layer),
                                           lambda: relu(norm(x)))
    yield row("package tracked", device, shape, "forward", BASELINE, ours, functions)
    yield row("package tracked", device, shape, "forward", "BatchNorm2d, ReLU", ours, modules)


def training(device, shape):
    x = torch.randn(shape, device=device, requires_grad=True)
    grad = torch.randn(shape, device=device)
    layer = qact.QuantileActivation2d(shape[1], device=device)
    theirs = baseline(x, layer)
    yield row("package training", device, shape, "forward", BASELINE, *fastest(
        lambda: layer(x), theirs))
    yield row("package training", device, shape, "both", BASELINE, *fastest(
        lambda: layer(x).backward(grad), lambda: theirs().backward(grad)))


def _folded(layer):
    scale = torch.rsqrt(layer.running_var_in + layer.eps)
    out = torch.rsqrt(layer.running_var_out + layer.eps)
    return scale, -layer.running_mean_in * scale, out, -layer.running_mean_out * out


def operator(shape, cpp):
    x = torch.randn(shape, requires_grad=True)
    vectors = [torch.full((shape[1],), value, requires_grad=True) for value in (1.0, 0.0, 1.0, 0.0)]
    grad = torch.randn(shape)

    def ours():
        return qact.functional.quantile_layer(x, *vectors)[0]

    def theirs():
        return cpp(x, *vectors)[0]

    assert torch.equal(ours(), theirs())
    yield row("package layer", "cpu", shape, "forward", "C++ operator", *fastest(ours, theirs))
    yield row("package layer", "cpu", shape, "both", "C++ operator", *fastest(
        lambda: ours().backward(grad), lambda: theirs().backward(grad)))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    print(f"gradients recorded in {'Python: ' + CPP_AUTOGRAD_MISSING if CPP_AUTOGRAD_MISSING else 'C++'}")
    cuda = torch.cuda.is_available() and not CUDA_MISSING
    rows = [found for device in ["cpu"] + ["cuda"] * cuda for shape in SHAPES
            for time_it in (inference, training) for found in time_it(device, shape)]
    if len(sys.argv) == 3:
        torch.ops.load_library(sys.argv[2])
        for shape in SHAPES:
            rows += operator(shape, torch.ops.qact.quantile_layer)
    path = pathlib.Path(sys.argv[1])
    kept = json.loads(path.read_text()) if path.exists() else []
    kept = [r for r in kept if not r["what"].startswith("package ")]
    path.write_text(json.dumps(kept + rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
