"""Times the fused layer next to BatchNorm2d + ReLU, eager and compiled by torch.compile.

    python scripts/bench_compiled.py build/libqact_ops.so [--device cpu] [--json build/bench.json]

A training step, forward and backward: on a GPU replayed as a CUDA graph, which is what is left when
launches cost nothing; on the CPU as a program calls it, with --threads threads. Medians of some
rounds, the three in turn, in one process. --json adds the rows to those that qact-bench wrote, in
place of earlier ones of the same device.
"""
import argparse
import json
import pathlib
import statistics
import time

import torch

SHAPES = [(128, 64, 32, 32), (128, 128, 16, 16), (128, 256, 8, 8), (128, 512, 4, 4)]
LARGE = [(256, 64, 56, 56), (1024, 64, 32, 32)]  # on a GPU
REPLAYS = 20


class Baseline(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(x))


class Layer(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.vectors = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.full((channels,), v)) for v in (1.0, 0.0, 1.0, 0.0)])

    def forward(self, x):
        return torch.ops.qact.quantile_layer(x, *self.vectors, track=True)[0]


def training_step(layer, x, grad):
    return torch.autograd.grad(layer(x), [x, *layer.parameters()], grad)


def validate(layer, x, grad):
    """What every norm promises of its output and gradient; qact-bench holds both to the oracle."""
    y = layer(x).detach().double().transpose(0, 1).flatten(1)
    dx = training_step(layer, x, grad)[0].double().transpose(0, 1).flatten(1)
    for term, error in (("mean of y", y.mean(1)), ("variance of y", y.var(1, False) - 1),
                        ("mean of grad_x", dx.mean(1) / dx.abs().mean(1))):
        if not error.abs().max() < 0.02:
            raise SystemExit(f"bench_compiled.py: expected a {term} within 0.02, "
                             f"got {error.abs().max():.3g}")


def captured(layer, x, grad):
    """Milliseconds of a replay of one training step as a graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            training_step(layer, x, grad)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.results = training_step(layer, x, grad)  # they have to live as long as the graph

    def milliseconds():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / REPLAYS
    return milliseconds


def called(layer, x, grad):
    """Milliseconds of a call."""
    for _ in range(3):
        training_step(layer, x, grad)

    def milliseconds():
        start = time.perf_counter()
        training_step(layer, x, grad)
        return 1e3 * (time.perf_counter() - start)
    return milliseconds


def measure(shape, dtype, layout, options):
    """Milliseconds of ours, the eager and the compiled baseline."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    device = options.device
    x = torch.randn(shape, device=device).to(dtype).contiguous(memory_format=layout)
    grad = torch.randn_like(x)
    x.requires_grad_(True)
    ours, baseline = Layer(shape[1]).to(device), Baseline(shape[1]).to(device)
    validate(ours, x, grad)
    timed = captured if device == "cuda" else called
    steps = [timed(layer, x, grad) for layer in (ours, baseline, torch.compile(baseline))]
    rounds = [[step() for step in steps] for _ in range(options.repeats)]
    return [statistics.median(times) for times in zip(*rounds)]


def write(path, rows, device):
    """Beside what other benchmarks wrote."""
    kept = [row for row in (json.loads(path.read_text()) if path.exists() else [])
            if row["peer"] != "compiled" or row["device"] != device]
    path.write_text(json.dumps(kept + rows, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    if on_gpu and not torch.cuda.is_available():
        parser.error("expected a GPU that torch can use, got none; --device cpu needs none")
    torch.set_num_threads(options.threads)
    torch.ops.load_library(options.library)
    where = torch.cuda.get_device_name() if on_gpu else f"CPU, {options.threads} threads"
    print(f"{where}, torch {torch.__version__}")
    print(f"{'shape':20} {'type':9} {'layout':14} {'qact ms':>8} {'eager ms':>9} {'ratio':>6} "
          f"{'compiled ms':>12} {'ratio':>6}")
    rows = []
    for shape in SHAPES + (LARGE if on_gpu else []):
        for dtype in (torch.float32, torch.bfloat16):
            for layout in (torch.contiguous_format, torch.channels_last):
                ours, eager, compiled = measure(shape, dtype, layout, options)
                names = str(dtype)[6:], str(layout)[6:].replace("_format", "")
                print(f"{str(shape):20} {names[0]:9} {names[1]:14} {ours:8.3f} {eager:9.3f} "
                      f"{ours / eager:6.2f} {compiled:12.3f} {ours / compiled:6.2f}", flush=True)
                rows.append({"what": "layer", "device": options.device, "shape": list(shape),
                             "dtype": names[0], "layout": names[1], "pass": "both",
                             "threads": options.threads, "qact_ms": ours, "peer": "compiled",
                             "peer_ms": compiled, "ratio": ours / compiled})
    if options.json:
        write(options.json, rows, options.device)


if __name__ == "__main__":
    main()
