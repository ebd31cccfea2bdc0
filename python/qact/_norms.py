"""What the layers with running statistics share."""

from typing import Optional

import torch
from torch import Tensor


def fold_norm(mean: Tensor, var: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
              eps: float) -> tuple[Tensor, Tensor]:
    """A norm as scale * x + shift, given its statistics."""
    scale = torch.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias


def channel_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """The unbiased variance and the mean of each channel; of a single value, 0 and itself."""
    dims = [0, *range(2, x.dim())]
    values = x if x.dtype == torch.float64 else x.float()
    # With symbols for sizes there is more than one value: compilers specialise on 0 and 1.
    correction = 1 if x.numel() > x.shape[1] else 0
    var, mean = torch.var_mean(values, dims, correction=correction)
    return var, mean
