"""Times the fused layer on a GPU next to BatchNorm2d + ReLU, eager and compiled by torch.compile.

    python scripts/bench_compiled.py build/libqact_ops.so

A training step, forward and backward, replayed as a CUDA graph: what is left when launches cost
nothing. Medians of 9 rounds, the three in turn, in one process.
"""
import statistics
import sys

import torch

SHAPES = [(128, 64, 32, 32), (128, 128, 16, 16), (128, 256, 8, 8), (128, 512, 4, 4),
          (256, 64, 56, 56), (1024, 64, 32, 32)]
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


def captured(layer, x, grad):
    """A graph of one training step."""
    def step():
        return torch.autograd.grad(layer(x), [x, *layer.parameters()], grad)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.results = step()  # they have to live as long as the graph
    return graph


def milliseconds(graph):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(REPLAYS):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / REPLAYS


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not torch.cuda.is_available():
        sys.exit("bench_compiled.py: expected a GPU that torch can use, got none")
    torch.ops.load_library(sys.argv[1])
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"{'shape':20} {'type':9} {'layout':14} {'qact ms':>8} {'eager ms':>9} {'ratio':>6} "
          f"{'compiled ms':>12} {'ratio':>6}")
    for shape in SHAPES:
        for dtype in (torch.float32, torch.bfloat16):
            for layout in (torch.contiguous_format, torch.channels_last):
                torch.manual_seed(0)
                torch._dynamo.reset()
                x = torch.randn(shape, device="cuda").to(dtype).contiguous(memory_format=layout)
                grad = torch.randn_like(x)
                x.requires_grad_(True)
                baseline = Baseline(shape[1]).cuda()
                graphs = [captured(layer, x, grad)
                          for layer in (Layer(shape[1]).cuda(), baseline, torch.compile(baseline))]
                rounds = [[milliseconds(graph) for graph in graphs] for _ in range(9)]
                ours, eager, compiled = (statistics.median(times) for times in zip(*rounds))
                print(f"{str(shape):20} {str(dtype)[6:]:9} {str(layout)[6:]:14} {ours:8.3f} "
                      f"{eager:9.3f} {ours / eager:6.2f} {compiled:12.3f} {ours / compiled:6.2f}",
                      flush=True)


if __name__ == "__main__":
    main()
