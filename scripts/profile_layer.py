"""Microseconds of every kernel in a training step of the fused layer, by torch's profiler.

    python scripts/profile_layer.py build/libqact_ops.so [--image-share 0.5]
"""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

SHAPES = [(128, 512, 4, 4), (128, 256, 8, 8), (128, 128, 16, 16), (128, 64, 32, 32), (128, 512)]
ROUNDS = 20


def training_step(x, image_share):
    channels = x.size(1)
    of_image = round(channels * image_share)
    weights = [torch.full((channels,), value, device="cuda", requires_grad=True)
               for value in (1.0, 0.0, 1.0, 0.0)]
    tracked = channels - of_image
    running = [torch.zeros(tracked, device="cuda") for _ in range(4)]
    context = torch.full((tracked, 256), 65536, device="cuda", dtype=torch.int64)
    batches = torch.zeros((), device="cuda", dtype=torch.int64)
    grad = torch.randn_like(x)
    n = x.numel() / channels

    def step():
        y, stats, batch = torch.ops.qact.quantile_layer(x, *weights, track=True,
                                                        image_channels=of_image)
        with torch.no_grad():
            torch.ops.qact._layer_track(
                *running, context, batches, stats, batch, 0.1, n, max(n, 1024.0)
            )
        torch.autograd.grad(y, [x] + weights, grad)

    return step


def print_kernels(step):
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as events:
        for _ in range(ROUNDS):
            step()
        torch.cuda.synchronize()
    for event in events.key_averages():
        if event.device_time_total > 0:
            print(f"  {event.device_time_total / ROUNDS:8.2f}  {event.key[:120]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--image-share", type=float, default=0,
                        help="of the channels, which are ranked in their image")
    options = parser.parse_args()
    torch.ops.load_library(options.library)
    for shape in SHAPES:
        if len(shape) == 2 and options.image_share > 0:
            continue  # images of one value
        for dtype in (torch.float32, torch.bfloat16):
            for last in (False, True) if len(shape) == 4 else (False,):
                x = torch.randn(shape, device="cuda", dtype=dtype)
                if last:
                    x = x.to(memory_format=torch.channels_last)
                print(shape, dtype, "channels_last" if last else "contiguous")
                print_kernels(training_step(x.requires_grad_(), options.image_share))


if __name__ == "__main__":
    main()
