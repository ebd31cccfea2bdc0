"""What the layers with running statistics share."""

from typing import NamedTuple, Optional, TypeVar

import torch
from torch import Tensor

_T = TypeVar("_T")


def given(value: Optional[_T]) -> _T:
    """What a layer's options promise to be there."""
    assert value is not None
    return value


class Norm(NamedTuple):
    """A norm whose statistics are given."""

    mean: Tensor
    var: Tensor
    weight: Optional[Tensor]
    bias: Optional[Tensor]

    def folded(self, eps: float) -> tuple[Tensor, Tensor]:
        """As scale * x + shift."""
        scale = torch.rsqrt(self.var + eps)
        if self.weight is not None:
            scale = scale * self.weight
        shift = -self.mean * scale
        return scale, shift if self.bias is None else shift + self.bias


def channel_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """The unbiased variance and the mean of each channel; of a single value, 0 and itself."""
    dims = [0, *range(2, x.dim())]
    values = x if x.dtype == torch.float64 else x.float()
    # With symbols for sizes there is more than one value: compilers specialise on 0 and 1.
    correction = 1 if x.numel() > x.shape[1] else 0
    var, mean = torch.var_mean(values, dims, correction=correction)
    return var, mean
