"""A QuantileActivation in its running context: as it stands (tracked), or blended with the batch's
(prior, stream). The first channels may be ranked in their image instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import torch
from torch import Tensor

from . import _autograd
from ._library import ops
from ._norms import channel_statistics, fold_norm
from .functional import algorithm_number, quantile_apply

if TYPE_CHECKING:
    from .modules import QuantileActivation

_STREAM_MOMENTUM = 0.1  # where a layer's own momentum is a cumulative average


def in_running(layer: QuantileActivation, x: Tensor, quantised: bool, track: bool) -> Tensor:
    first = layer._image_channels
    if first == layer.num_features:
        return _in_images(layer, x)
    if layer.context_mode == "tracked":
        return _in_tracked(layer, x, first, quantised)
    if first == 0:
        return _in_blend(layer, x, quantised, track)
    return torch.cat([_in_images(layer, x[:, :first]),
                      _in_blend(layer, x[:, first:], quantised, track)], 1)


def _in_images(layer: QuantileActivation, x: Tensor) -> Tensor:
    """x: the channels whose scope is the image."""
    channels = x.shape[1]
    vectors = [v if v is None else v[:channels]
               for v in (layer.weight_in, layer.bias_in, layer.weight_out, layer.bias_out)]
    settings = (*layer._settings(channels)[:-1], 0)
    return _autograd.layer(x, *vectors, settings, False)[0]


def _in_tracked(layer: QuantileActivation, x: Tensor, first: int, quantised: bool) -> Tensor:
    context, parts = _tracked_state(layer)
    if _autograd.plain():
        quantiles = layer._running_quantiles.get(context, first, layer.levels, layer.bound,
                                                 layer.positive_share)
    else:
        quantiles = ops.context_quantiles(context[first:] if first else context, layer.levels,
                                          layer.bound, layer.positive_share)
    if _autograd.takes_tracked(x, parts):
        numbers = (layer.eps, quantised, first, layer.bound, layer.positive_share,
                   algorithm_number(layer.algorithm))
        return _autograd.tracked(x, quantiles, parts, numbers)
    if first == 0:
        return _applied(layer, x, quantiles, parts, quantised)
    rows = tuple(layer._rows(part) for part in parts)
    return torch.cat([_in_images(layer, x[:, :first]),
                      _applied(layer, x[:, first:], quantiles, rows, quantised)], 1)


def _applied(layer: QuantileActivation, x: Tensor, quantiles: Tensor,
             parts: tuple[Optional[Tensor], ...], quantised: bool) -> Tensor:
    scale = shift = out_scale = out_shift = None
    if layer.norm_in:
        scale, shift = fold_norm(*parts[:4], layer.eps)
    if layer.norm_out:
        out_scale, out_shift = fold_norm(*parts[4:], layer.eps)
    return quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, layer.bandwidth,
                          quantised)


def _tracked_state(layer: QuantileActivation) -> tuple[Tensor, tuple[Optional[Tensor], ...]]:
    """The running context, and both norms' mean, variance, weight and bias."""
    try:  # a tenth of the time that nine attributes of a module take
        p, b = layer._parameters, layer._buffers
        return b["context"], (
            b["running_mean_in"], b["running_var_in"], p["weight_in"], p["bias_in"],
            b["running_mean_out"], b["running_var_out"], p["weight_out"], p["bias_out"])
    except KeyError:  # parametrised: no longer a parameter by its name
        return layer.context, (
            layer.running_mean_in, layer.running_var_in, layer.weight_in, layer.bias_in,
            layer.running_mean_out, layer.running_var_out, layer.weight_out, layer.bias_out)


def _in_blend(layer: QuantileActivation, x: Tensor, quantised: bool, track: bool) -> Tensor:
    """prior: the running context counts as so many images against the batch's own. stream: the
    running one moves by momentum and is used after that. Either way both norms are blended by
    the same shares, each before what follows it is ranked."""
    stream = layer.context_mode == "stream"
    track = stream and track
    momentum = _STREAM_MOMENTUM if layer.momentum is None else layer.momentum
    images = x.shape[0]
    share = momentum if stream else images / (layer.prior + images)
    rows = layer._rows

    def blend(running: Tensor, batch: Tensor) -> Tensor:
        blended = torch.lerp(running, batch.to(running.dtype), share)
        if track:
            with torch.no_grad():
                running.copy_(blended)
        return blended

    if track:
        with torch.no_grad():
            layer.num_batches_tracked.add_(1)
    scale = shift = None
    if layer.norm_in:
        var, mean = channel_statistics(x)
        mean = blend(rows(layer.running_mean_in), mean)
        var = blend(rows(layer.running_var_in), var)
        scale, shift = fold_norm(mean, var, rows(layer.weight_in), rows(layer.bias_in), layer.eps)
    with torch.no_grad():
        context = rows(layer.context)
        blended = ops.context_blend(
            context, ops.context_build(x, scale, shift), None, None if stream else layer.prior,
            momentum, images, x.numel() // x.shape[1])
        if track:
            context.copy_(blended)
        quantiles = ops.context_quantiles(blended, layer.levels, layer.bound, layer.positive_share)
    u = quantile_apply(x, quantiles, scale, shift, None, None, layer.bandwidth, quantised)
    if not layer.norm_out:
        return u
    var, mean = channel_statistics(u)
    mean = blend(rows(layer.running_mean_out), mean)
    var = blend(rows(layer.running_var_out), var)
    scale, shift = fold_norm(mean, var, rows(layer.weight_out), rows(layer.bias_out), layer.eps)
    shape = [1, -1] + [1] * (x.dim() - 2)
    return (u * scale.view(shape) + shift.view(shape)).to(x.dtype)
