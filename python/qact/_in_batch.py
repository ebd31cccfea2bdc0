"""A QuantileActivation in the batch's own context, and what it remembers of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from . import _autograd
from ._library import ops
from ._norms import Vectors, channel_statistics, given, state
from ._options import describe
from .functional import context_build, quantile_activation

if TYPE_CHECKING:
    from .modules import QuantileActivation


def in_batch(layer: QuantileActivation, x: Tensor, quantised: bool, track: bool) -> Tensor:
    if layer._fused:
        return _fused(layer, x, track)
    if (layer.norm_in or layer.norm_out) and x.numel() <= x.shape[1]:
        raise ValueError(f"[{type(layer).__name__}] expected more than one value per channel to "
                         f"take statistics from, got {describe(x)}")
    moves: list[tuple[Tensor, Tensor]] = []  # running vectors, and what they become
    z = _batch_norm(layer, x, "in", moves if track else None) if layer.norm_in else x
    u = quantile_activation(z, layer.levels, layer.bound, layer.positive_share, layer.bandwidth,
                            layer.algorithm, quantised)
    y = _batch_norm(layer, u, "out", moves if track else None) if layer.norm_out else u
    if track:  # at the end: a call that raises leaves the state as it was
        context, batches = given(layer.context), given(layer.num_batches_tracked)
        moves.append((context, ops.context_blend(
            context, context_build(z), batches, None, layer.momentum, x.shape[0],
            x.numel() // x.shape[1])))
        for running, moved in moves:
            running.copy_(moved.detach())
        batches.add_(1)
    return y


def _batch_norm(layer: QuantileActivation, x: Tensor, end: str,
                moves: Optional[list[tuple[Tensor, Tensor]]]) -> Tensor:
    weight, bias = getattr(layer, "weight_" + end), getattr(layer, "bias_" + end)
    if moves is None:
        return F.batch_norm(x, None, None, weight, bias, True, 0.0, layer.eps)
    running = [getattr(layer, f"running_{name}_{end}") for name in ("mean", "var")]
    mean, var = (vector.clone() for vector in running)
    moves.extend(zip(running, (mean, var)))
    if layer.momentum is not None:
        return F.batch_norm(x, mean, var, weight, bias, True, layer.momentum, layer.eps)
    # A cumulative average: its share is a tensor's, which no compiler may read.
    share = torch.reciprocal(given(layer.num_batches_tracked) + 1)
    batch_var, batch_mean = channel_statistics(x.detach())
    mean.lerp_(batch_mean.to(mean.dtype), share.to(mean.dtype))
    var.lerp_(batch_var.to(var.dtype), share.to(var.dtype))
    return F.batch_norm(x, None, None, weight, bias, True, 0.0, layer.eps)


def _fused(layer: QuantileActivation, x: Tensor, track: bool) -> Tensor:
    context, batches, (mean_in, var_in, weight_in, bias_in, mean_out, var_out, weight_out,
                       bias_out) = state(layer)
    first = layer._image_channels
    y, stats, batch = _autograd.layer(x, weight_in, bias_in, weight_out, bias_out,
                                      layer._settings(first), track)
    if not track:
        return y
    if first == layer.num_features:
        given(batches).add_(1)
        return y
    running: Vectors = (mean_in, var_in, mean_out, var_out, context)
    if first > 0:
        running = tuple(given(buffer)[first:] for buffer in running)
    images = x.shape[0]
    context_images = min(layer.group_images, images) if layer.group_images else images
    ops.layer_track.default(*running, batches, stats, batch, layer.momentum,
                            x.numel() // x.shape[1], context_images, images)
    return y
