"""A QuantileActivation in its running context as it stands: the mode tracked. The first channels may
be ranked in their image instead.

A small layer takes 2 us, as long as some forty looks at Python's objects do. So on the way to the
operator nothing is looked at twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from torch import Tensor

from . import _autograd
from ._in_images import halves, in_images, joined
from ._library import ops
from ._norms import given
from .functional import algorithm_number, quantile_apply

if TYPE_CHECKING:
    from .modules import QuantileActivation

Vectors = tuple[Optional[Tensor], ...]


def in_tracked(layer: QuantileActivation, x: Tensor, quantised: bool) -> Tensor:
    first = layer._image_channels
    if first == layer.num_features:
        return in_images(layer, x)
    context, vectors = _state(layer)
    levels, bound, share = layer.levels, layer.bound, layer.positive_share
    if _autograd.plain():
        quantiles = layer._running_quantiles.get(context, first, levels, bound, share)
    else:
        quantiles = ops.context_quantiles(context[first:] if first else context, levels, bound,
                                          share)
    if _autograd.takes_tracked(x, vectors):
        return _autograd.tracked(x, quantiles, vectors, (
            layer.eps, quantised, first, bound, share, algorithm_number(layer.algorithm)))
    scale = shift = out_scale = out_shift = None
    if layer.norm_in:
        scale, shift = layer._running_norm("in").folded(layer.eps)
    if layer.norm_out:
        out_scale, out_shift = layer._running_norm("out").folded(layer.eps)
    images, others = halves(layer, x)
    y = quantile_apply(others, quantiles, scale, shift, out_scale, out_shift, layer.bandwidth,
                       quantised)
    return joined(layer, images, y)


def _state(layer: QuantileActivation) -> tuple[Tensor, Vectors]:
    """The running context, and both norms' mean, variance, weight and bias."""
    try:  # a tenth of the time that nine attributes of a module take
        p, b = layer._parameters, layer._buffers
        return given(b["context"]), (
            b["running_mean_in"], b["running_var_in"], p["weight_in"], p["bias_in"],
            b["running_mean_out"], b["running_var_out"], p["weight_out"], p["bias_out"])
    except KeyError:  # parametrised: no longer a parameter by its name
        return given(layer.context), (
            layer.running_mean_in, layer.running_var_in, layer.weight_in, layer.bias_in,
            layer.running_mean_out, layer.running_var_out, layer.weight_out, layer.bias_out)
