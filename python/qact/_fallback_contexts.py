"""Contexts in torch's own operations, for devices without kernels: counted and blended as
core/context.h says."""

from typing import Union

import torch
from torch import Tensor

from ._library import CONTEXT_BINS, ops

_UNIT = 1 << 16  # a context's counts per value


def real_type(x: Tensor) -> torch.dtype:
    """Double where the device has it; MPS has none."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def double_type(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def channel_rows(x: Tensor) -> Tensor:
    """(C, n): the values of each channel."""
    return x.transpose(0, 1).reshape(x.shape[1], -1).to(real_type(x))


def edges(device: torch.device) -> Tensor:
    """The inner edges of a context's bins, as core/context.h has them."""
    bits = ((torch.arange(CONTEXT_BINS // 2 - 1, dtype=torch.int32) + (127 - 8) * 8) << 20)
    magnitudes = bits.view(torch.float32)
    return torch.cat([-magnitudes.flip(0), torch.zeros(1), magnitudes]).to(device)


def bins(z: Tensor) -> Tensor:
    inner = edges(z.device)
    # A bin holds its lower edge; below 0 it is mirrored, and holds its upper one.
    upward = torch.bucketize(z, inner, right=True)
    downward = torch.bucketize(z, inner)
    return torch.where(z >= 0, upward, downward).clamp(0, CONTEXT_BINS - 1)


def ties(z: Tensor) -> Tensor:
    """Which values are ties among those of their sign."""
    nan = z.isnan()
    # A search compares with what it meets, and nothing compares with a NaN.
    ascending = z.masked_fill(nan, torch.inf).sort(1).values
    end = torch.minimum(torch.searchsorted(ascending, z, right=True), (~nan).sum(1, keepdim=True))
    equal = (end - torch.searchsorted(ascending, z)).masked_fill_(nan, 0)
    positive = z >= 0
    of_their_sign = torch.where(positive, positive.sum(1, keepdim=True),
                                (z < 0).sum(1, keepdim=True))
    return (equal >= 8) & (64 * equal >= of_their_sign)


def tie_bins(z: Tensor) -> Tensor:
    """The first that ends 1/32 or more below z, and 1/32 of |z|, without a change of sign."""
    below = bins(z - z.abs().clamp_min(1) / 32) - 1
    below = torch.maximum(below, torch.where(z < 0, 0, CONTEXT_BINS // 2))
    return torch.where(z.isfinite(), below, bins(z))


def count(z: Tensor) -> Tensor:
    narrow = z.float()
    where = torch.where(ties(z), tie_bins(narrow), bins(narrow))
    counts = torch.zeros(len(z), CONTEXT_BINS, dtype=torch.int64, device=z.device)
    return counts.scatter_add_(1, where, (~z.isnan()).to(torch.int64) * _UNIT)


def context_build(x, scale, shift):
    z = channel_rows(x)
    z = z if scale is None else z * scale.to(z.dtype)[:, None]
    return count(z if shift is None else z + shift.to(z.dtype)[:, None])


def blend(a: Tensor, b: Tensor, share: Union[float, Tensor],
          values: Union[float, Tensor]) -> Tensor:
    real = double_type(a.device)

    def scaled(context, count):
        return context.to(real) * (count * _UNIT) / context.sum(1, keepdim=True).clamp_min(1)

    empty_a, empty_b = (c.sum(1, keepdim=True) == 0 for c in (a, b))
    first = scaled(a, torch.where(empty_b, values, (1 - share) * values).to(real))
    second = scaled(b, torch.where(empty_a, values, share * values).to(real))
    return (first + second).round().to(torch.int64)


def context_blend(a, b, batches, prior, momentum, images, n):
    if prior is not None:
        share, values = images / (prior + images), n * (prior + images) / images
    else:
        share, values = (1.0 / (int(batches) + 1) if momentum is None else momentum), float(n)
    return blend(a, b, share, min(max(values, 1024.0), 2.0 ** 40))


def context_quantiles(context, levels, bound, positive_share):
    # Small, and rarely: on the CPU, by the kernel.
    found = ops.context_quantiles(context.cpu(), levels, bound, positive_share)
    return found.to(double_type(context.device)).to(context.device)
