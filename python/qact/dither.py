"""Noise below one grey level, so that pixels do not tie."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_STREAM = 15  # Stream::dither of qact/base/random.h


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _mix(z: Tensor) -> Tensor:
    """splitmix64's finaliser, on the bits of int64."""
    def shifted(by: int) -> Tensor:
        return (z >> by) & ((1 << (64 - by)) - 1)

    z = (z ^ shifted(30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(27)) * _signed(0x94D049BB133111EB)
    return z ^ shifted(31)


def _pattern(channels: int, places: int, device: torch.device) -> Tensor:
    """The C++ program's noise at inference, (channels, places), within half a step of 0."""
    draws = (places + 3) // 4  # of 64 bits for each channel, 16 for each place
    start = _mix(torch.tensor(_signed((_STREAM + 1) * _STEP & _MASK), device=device))
    index = torch.arange(1, channels * draws + 1, device=device)
    bits = _mix(start + index * _signed(_STEP)).view(channels, draws, 1)
    bits = (bits >> torch.tensor([0, 16, 32, 48], device=device)) & 0xFFFF
    return (bits.flatten(1)[:, :places] + 0.5) / 65536 - 0.5


class Dither(nn.Module):
    r"""Adds to images what their 8 bits leave out.

    .. math:: y = x + \text{step} \, (u - 1/2)

    with :math:`u` uniform in :math:`[0, 1)`: drawn anew in training; in evaluation the same for every
    image, those of the C++ program, so that an image alone decides what a network sees. Values that
    tie no longer do, and no others change their order.

    The rank of a constant background is the level where it ends, and any noise spreads it over many.
    In front of a network whose images have one, in training and evaluation, this lets backgrounds
    rank as they will under noise.

    Args:
        step: the distance of two grey levels, or one for each channel: 1/255 for images within 0 and
            1, over the deviation that they are normalised by.

    Shape:
        x and y: (N, C, ...), images side by side

    >>> images = torch.zeros(2, 1, 3, 3)
    >>> dithered = Dither().eval()(images)
    >>> torch.equal(dithered[0], dithered[1]), dithered.abs().max() < 0.5 / 255
    (True, tensor(True))
    """

    def __init__(self, step: float | Sequence[float] = 1 / 255) -> None:
        super().__init__()
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        if not x.is_floating_point() or x.dim() < 2:
            raise ValueError("[Dither] expected floating images of 2 or more dimensions, (N, C, ...), "
                             f"got {x.dtype} of shape {tuple(x.shape)}")
        steps = torch.as_tensor(self.step, dtype=torch.float32, device=x.device)
        if steps.dim() > 0:
            if steps.shape != (x.shape[1],):
                raise ValueError(f"[Dither] expected a step for each of {x.shape[1]} channels, got "
                                 f"{tuple(steps.shape)}")
            steps = steps.view(-1, *[1] * (x.dim() - 2))
        if self.training:
            noise = torch.rand_like(x, dtype=torch.float32) - 0.5
        else:
            shape = x.shape[1:]
            noise = _pattern(shape[0], shape[1:].numel(), x.device).to(torch.float32).view(shape)
        return x + (steps * noise).to(x.dtype)

    def extra_repr(self) -> str:
        return f"step={self.step}"
