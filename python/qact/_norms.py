"""What the layers with running statistics share."""

from typing import Any, NamedTuple, Optional, TypeVar

import torch
from torch import Tensor

_T = TypeVar("_T")
Vectors = tuple[Optional[Tensor], ...]


def given(value: Optional[_T]) -> _T:
    """What a layer's options promise to be there."""
    assert value is not None
    return value


def state(layer: Any) -> tuple[Optional[Tensor], Optional[Tensor], Vectors]:
    """The running context of a QuantileActivation, its number of batches, and both norms' mean,
    variance, weight and bias."""
    try:  # a tenth of the time that ten attributes of a module take
        p, b = layer._parameters, layer._buffers
        return b["context"], b["num_batches_tracked"], (
            b["running_mean_in"], b["running_var_in"], p["weight_in"], p["bias_in"],
            b["running_mean_out"], b["running_var_out"], p["weight_out"], p["bias_out"])
    except KeyError:  # parametrised: no longer a parameter by its name
        return layer.context, layer.num_batches_tracked, (
            layer.running_mean_in, layer.running_var_in, layer.weight_in, layer.bias_in,
            layer.running_mean_out, layer.running_var_out, layer.weight_out, layer.bias_out)


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
