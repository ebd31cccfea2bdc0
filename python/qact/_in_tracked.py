"""A QuantileActivation in its running context as it stands: the mode tracked. The first channels may
be ranked in their image instead.

A small layer takes 2 us, as long as some forty looks at Python's objects do. So on the way to the
operator nothing is looked at twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from . import _autograd
from ._in_images import halves, in_images, joined
from ._library import ops
from ._norms import given, state
from .functional import algorithm_number, quantile_apply

if TYPE_CHECKING:
    from .modules import QuantileActivation


def in_tracked(layer: QuantileActivation, x: Tensor, quantised: bool) -> Tensor:
    first = layer._image_channels
    if first == layer.num_features:
        return in_images(layer, x)
    known, _, vectors = state(layer)
    context = given(known)
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
