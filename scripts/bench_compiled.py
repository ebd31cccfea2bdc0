"""Times the fused layer next to what it replaces, eager and compiled by torch.compile.

    python scripts/bench_compiled.py build/libqact_ops.so [--device cpu] [--json build/bench.json]

    layer        a training step, forward and backward, next to BatchNorm2d + ReLU
    layer_image  the same with every channel ranked in its image, next to InstanceNorm2d + ReLU
    layer_half   the same with half of the channels ranked in their image
    inference    values ranked by given quantiles, next to BatchNorm2d + ReLU in eval()
    ties         a training step on rectified input, next to the layer itself on input without ties

On a GPU all are replayed as CUDA graphs, which is what is left when launches cost nothing; on the
CPU they are called as a program does, with --threads threads. Medians of some rounds, all in turn,
in one process. --json adds the rows to those that are in the file, in place of earlier ones of the
same benchmark and device.
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
    def __init__(self, channels, norm=torch.nn.BatchNorm2d):
        super().__init__()
        self.norm = norm(channels, affine=True)

    def forward(self, x):
        return torch.relu(self.norm(x))


class Layer(torch.nn.Module):
    def __init__(self, channels, image_share=0):
        super().__init__()
        self.image_channels = round(channels * image_share)
        self.vectors = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.full((channels,), v)) for v in (1.0, 0.0, 1.0, 0.0)])

    def forward(self, x):
        return torch.ops.qact.quantile_layer(x, *self.vectors, track=True,
                                             image_channels=self.image_channels)[0]


class GivenQuantiles(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        normal = torch.distributions.Normal(0.0, 1.0)
        at = normal.icdf((torch.arange(100, dtype=torch.float64) + 0.5) / 100)
        self.register_buffer("quantiles", at.expand(channels, 100).contiguous())
        for name, value in (("scale", 1.0), ("shift", 0.0)):
            self.register_buffer(name, torch.full((channels,), value))

    def forward(self, x):
        return torch.ops.qact.quantile_apply(x, self.quantiles, self.scale, self.shift,
                                             self.scale, self.shift)


def training_step(layer, x, grad):
    return torch.autograd.grad(layer(x), [x, *layer.parameters()], grad)


def inference(layer, x, grad):
    with torch.no_grad():
        return layer(x)


def validate(layer, x, grad):
    """What every norm promises of its output and gradient; qact-bench holds both to the oracle."""
    if isinstance(layer, GivenQuantiles):
        found = inference(layer, x, grad)[:1].double()
        z = x[:1].detach().double()
        off = (found - torch.searchsorted(layer.quantiles[0], z, right=True) / 100).abs().max()
        if not off <= (0 if x.dtype == torch.float32 else 0.005) + 1e-6:
            raise SystemExit(f"bench_compiled.py: expected the levels of all values, got one {off} off")
        return
    y = layer(x).detach().double().transpose(0, 1).flatten(1)
    dx = training_step(layer, x, grad)[0].double().transpose(0, 1).flatten(1)
    for term, error in (("mean of y", y.mean(1)), ("variance of y", y.var(1, False) - 1),
                        ("mean of grad_x", dx.mean(1) / dx.abs().mean(1))):
        if not error.abs().max() < 0.02:
            raise SystemExit(f"bench_compiled.py: expected a {term} within 0.02, "
                             f"got {error.abs().max():.3g}")


def captured(work, layer, x, grad):
    """Milliseconds of a replay of `work` as a graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work(layer, x, grad)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.results = work(layer, x, grad)  # they have to live as long as the graph

    def milliseconds():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / REPLAYS
    return milliseconds


def called(work, layer, x, grad):
    """Milliseconds of a call."""
    for _ in range(3):
        work(layer, x, grad)

    def milliseconds():
        start = time.perf_counter()
        work(layer, x, grad)
        return 1e3 * (time.perf_counter() - start)
    return milliseconds


def instance_norm(channels, affine):
    return torch.nn.InstanceNorm2d(channels, affine=affine)


# What is timed: our module, its baseline (None: ourselves without ties), and what both do.
WHAT = {
    "layer": (Layer, Baseline, training_step),
    "layer_image": (lambda c: Layer(c, 1), lambda c: Baseline(c, instance_norm), training_step),
    "layer_half": (lambda c: Layer(c, 0.5), lambda c: Baseline(c, instance_norm), training_step),
    "inference": (GivenQuantiles, Baseline, inference),
    "ties": (Layer, None, training_step),
}


def measure(what, shape, dtype, layout, options):
    """Milliseconds of ours, the eager and the compiled baseline."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    device = options.device
    make, make_baseline, work = WHAT[what]
    x = torch.randn(shape, device=device).to(dtype).contiguous(memory_format=layout)
    grad = torch.randn_like(x)
    ours = make(shape[1]).to(device)
    validate(ours, x, grad) if work is inference else validate(ours, x.requires_grad_(True), grad)
    timed = captured if device == "cuda" else called
    if make_baseline is None:
        tied = x.detach().relu().requires_grad_(True)
        steps = [timed(work, ours, tied, grad), timed(work, ours, x, grad)]
    else:
        baseline = make_baseline(shape[1]).to(device).train(work is training_step)
        steps = [timed(work, layer, x, grad) for layer in (ours, baseline, torch.compile(baseline))]
    rounds = [[step() for step in steps] for _ in range(options.repeats)]
    times = [statistics.median(times) for times in zip(*rounds)]
    return times if make_baseline else [times[0], times[1], times[1]]


# The baselines' names in bench.json.
PEERS = {"layer": "compiled", "layer_image": "compiled InstanceNorm2d + ReLU",
         "layer_half": "compiled InstanceNorm2d + ReLU", "inference": "compiled, eval()",
         "ties": "without ties"}


def write(path, rows):
    """Beside what other benchmarks, and other calls of this one, wrote."""
    def key(row):
        return row["what"], row.get("peer"), row["device"]

    anew = {key(row) for row in rows}
    kept = [row for row in (json.loads(path.read_text()) if path.exists() else [])
            if key(row) not in anew]
    path.write_text(json.dumps(kept + rows, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(WHAT),
                        metavar="NAMES", help=f"some of {','.join(WHAT)}")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    for name in options.only:
        if name not in WHAT:
            parser.error(f"expected some of {','.join(WHAT)}, got {name}")
    on_gpu = options.device == "cuda"
    if on_gpu and not torch.cuda.is_available():
        parser.error("expected a GPU that torch can use, got none; --device cpu needs none")
    torch.set_num_threads(options.threads)
    torch.ops.load_library(options.library)
    where = torch.cuda.get_device_name() if on_gpu else f"CPU, {options.threads} threads"
    print(f"{where}, torch {torch.__version__}")
    print(f"{'what':12} {'shape':20} {'type':9} {'layout':14} {'qact ms':>8} {'eager ms':>9} "
          f"{'ratio':>6} {'compiled ms':>12} {'ratio':>6}")
    rows = []
    cases = [(what, shape, dtype, layout) for what in options.only
             for shape in SHAPES + (LARGE if on_gpu else [])
             for dtype in (torch.float32, torch.bfloat16)
             for layout in (torch.contiguous_format, torch.channels_last)]
    for what, shape, dtype, layout in cases:
        ours, eager, compiled = measure(what, shape, dtype, layout, options)
        names = str(dtype)[6:], str(layout)[6:].replace("_format", "")
        print(f"{what:12} {str(shape):20} {names[0]:9} {names[1]:14} {ours:8.3f} {eager:9.3f} "
              f"{ours / eager:6.2f} {compiled:12.3f} {ours / compiled:6.2f}", flush=True)
        rows.append({"what": what, "device": options.device, "shape": list(shape),
                     "dtype": names[0], "layout": names[1],
                     "pass": "forward" if what == "inference" else "both",
                     "threads": options.threads, "qact_ms": ours, "peer": PEERS[what],
                     "peer_ms": compiled, "ratio": ours / compiled})
    if options.json:
        write(options.json, rows)


if __name__ == "__main__":
    main()
