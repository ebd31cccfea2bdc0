"""A QuantileActivation in its running context: as it stands (tracked), or blended with the batch's
(prior, stream). The first channels may be ranked in their image instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Union

import torch
from torch import Tensor

from . import _autograd
from ._fallback_contexts import blend
from ._library import ops
from ._norms import Norm, channel_statistics, given
from ._options import CONTEXT_MODES, check_mode
from .functional import algorithm_number, context_build, quantile_apply

if TYPE_CHECKING:
    from .modules import QuantileActivation

_Vectors = tuple[Optional[Tensor], ...]
_STREAM_MOMENTUM = 0.1  # where a layer's own momentum is a cumulative average


def in_running(layer: QuantileActivation, x: Tensor, quantised: bool, track: bool) -> Tensor:
    if layer.context_mode not in CONTEXT_MODES:  # an attribute that anybody may set
        check_mode(type(layer).__name__, layer.context_mode, layer.prior)
    if layer._image_channels == layer.num_features:
        return in_images(layer, x)
    if layer.context_mode == "tracked":
        return _in_tracked(layer, x, quantised)
    return in_blend(layer, x, quantised, track, Batch(x))


def in_images(layer: QuantileActivation, x: Tensor, empty: bool = False) -> Tensor:
    """x: the channels whose scope is the image. empty: of no images, which only a layer of several
    processes has here."""
    channels = x.shape[1]
    weight_in, bias_in, weight_out, bias_out = vectors = [
        v if v is None else v[:channels]
        for v in (layer.weight_in, layer.bias_in, layer.weight_out, layer.bias_out)]
    if empty:
        return of_no_images(x, vectors)
    settings = (*layer._settings(channels)[:-1], 0)
    return _autograd.layer(x, weight_in, bias_in, weight_out, bias_out, settings, False)[0]


def of_no_images(x: Tensor, vectors: list[Optional[Tensor]]) -> Tensor:
    """The layer of no images, whose parameters still have gradients: 0."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    for vector in vectors:
        if vector is not None:
            x = x * vector.view(shape).to(x.dtype)
    return x.clone()


def _halves(layer: QuantileActivation, x: Tensor) -> tuple[Optional[Tensor], Tensor]:
    """The channels whose scope is the image, if any, and the others. Cut in one piece, so that
    their gradients are joined in one."""
    first = layer._image_channels
    if first == 0:
        return None, x
    images, others = x.split([first, x.shape[1] - first], 1)
    return images, others


def _joined(layer: QuantileActivation, images: Optional[Tensor], others: Tensor,
            empty: bool = False) -> Tensor:
    return others if images is None else torch.cat([in_images(layer, images, empty), others], 1)


def _numbers(layer: QuantileActivation, quantised: bool) -> tuple:
    """Those of layer_tracked's schema, from eps on."""
    return (layer.eps, quantised, layer._image_channels, layer.bound, layer.positive_share,
            algorithm_number(layer.algorithm))


def _in_tracked(layer: QuantileActivation, x: Tensor, quantised: bool) -> Tensor:
    context, parts = _tracked_state(layer)
    first = layer._image_channels
    if _autograd.plain():
        quantiles = layer._running_quantiles.get(context, first, layer.levels, layer.bound,
                                                 layer.positive_share)
    else:
        quantiles = ops.context_quantiles(context[first:] if first else context, layer.levels,
                                          layer.bound, layer.positive_share)
    if _autograd.takes_tracked(x, parts):
        return _autograd.tracked(x, quantiles, parts, _numbers(layer, quantised))
    scale = shift = out_scale = out_shift = None
    if layer.norm_in:
        scale, shift = layer._running_norm("in").folded(layer.eps)
    if layer.norm_out:
        out_scale, out_shift = layer._running_norm("out").folded(layer.eps)
    images, others = _halves(layer, x)
    y = quantile_apply(others, quantiles, scale, shift, out_scale, out_shift, layer.bandwidth,
                       quantised)
    return _joined(layer, images, y)


def _tracked_state(layer: QuantileActivation) -> tuple[Tensor, _Vectors]:
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


class Batch:
    """What the running context is blended with: x, of which others may know more than this one."""

    empty = False  # whether x itself has no images

    def __init__(self, x: Tensor) -> None:
        self.images, self.values = x.shape[0], x.numel() // x.shape[1]

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The unbiased variance and the mean of each channel."""
        return channel_statistics(x)

    def context(self, x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor]) -> Tensor:
        return context_build(x, scale, shift)


class _Blend:
    """How a batch's statistics meet the running ones. prior: the running context counts as so many
    images against the batch's own. stream: the running one moves by momentum and is used after
    that. It is written at the end, so that an error on the way leaves it as it was."""

    def __init__(self, layer: QuantileActivation, batch: Batch, track: bool) -> None:
        stream = layer.context_mode == "stream"
        images: Union[int, Tensor] = batch.images
        if isinstance(images, Tensor):  # of torch.jit.trace, which follows sizes as tensors
            images = images.double()
        self.batch, self.images, self.track = batch, images, stream and track
        self.prior = None if stream else layer.prior
        self.momentum = _STREAM_MOMENTUM if layer.momentum is None else layer.momentum
        self.share = self.momentum if stream else images / (layer.prior + images)
        self._moved: list[tuple[Tensor, Tensor]] = []

    def write(self) -> None:
        for running, blended in self._moved:
            running.copy_(blended)

    def _vector(self, running: Tensor, batch: Tensor) -> Tensor:
        share = self.share
        if isinstance(share, Tensor):
            share = share.to(running.dtype)
        blended = torch.lerp(running, batch.to(running.dtype), share)
        self._moved += [(running, blended.detach())] if self.track else []
        return blended

    def norm(self, running: Norm, x: Tensor) -> Norm:
        var, mean = self.batch.statistics(x)
        return running._replace(mean=self._vector(running.mean, mean),
                                var=self._vector(running.var, var))

    def context(self, running: Tensor, x: Tensor, scale: Optional[Tensor],
                shift: Optional[Tensor]) -> Tensor:
        batch, n = self.batch.context(x, scale, shift), self.batch.values
        if torch.jit.is_tracing():  # the operator takes numbers, which would stay those of the trace
            values = torch.ones((), dtype=torch.float64, device=running.device) * n
            if self.prior is not None:
                values = values / self.share
            blended = blend(running, batch, self.share, values.clamp(1024.0, 2.0 ** 40))
        else:
            blended = ops.context_blend(running, batch, None, self.prior, self.momentum, self.images,
                                        n)
        self._moved += [(running, blended.detach())] if self.track else []
        return blended


def _into_one(layer: QuantileActivation, x: Tensor, quantiles: Tensor, inner: Norm,
              quantised: bool) -> Optional[Tensor]:
    """Both halves ranked and written to one output, the others without their outer norm. None
    where somebody looks on, for a gradient or a compiler."""
    if not _autograd.plain():
        return None
    first = layer._image_channels

    def whole(running: Optional[Tensor], others: Tensor) -> Tensor:
        return torch.cat([given(running)[:first], others])

    vectors = (whole(layer.running_mean_in, inner.mean), whole(layer.running_var_in, inner.var),
               layer.weight_in, layer.bias_in, None, None, layer.weight_out, layer.bias_out)
    if not _autograd.takes_tracked(x, vectors):
        return None
    return _autograd.tracked(x, quantiles, vectors, _numbers(layer, quantised))


def in_blend(layer: QuantileActivation, x: Tensor, quantised: bool, track: bool,
             batch: Batch) -> Tensor:
    device = given(layer.context).device
    if x.device != device:  # what blends vectors would not say which
        raise RuntimeError(f"[{type(layer).__name__}] expected x on {device}, as the layer, got "
                           f"{x.device}")
    blending = _Blend(layer, batch, track)
    y = _blended(layer, x, quantised, blending)
    blending.write()
    if blending.track:
        given(layer.num_batches_tracked).add_(1)
    return y


def _blended(layer: QuantileActivation, x: Tensor, quantised: bool, blending: _Blend) -> Tensor:
    """Both norms are blended by the same shares as the context, each before what follows it is
    ranked."""
    images, others = _halves(layer, x)
    inner, scale, shift = None, None, None
    if layer.norm_in:
        inner = blending.norm(layer._running_norm("in"), others)
        scale, shift = inner.folded(layer.eps)
    context = blending.context(given(layer._rows(layer.context)), others, scale, shift)
    quantiles = ops.context_quantiles(context, layer.levels, layer.bound, layer.positive_share)
    y, empty = None, blending.batch.empty
    if images is not None and not empty:
        y = _into_one(layer, x, quantiles, given(inner), quantised)
    if empty:  # all processes take part in the sums, and in their gradients
        u = of_no_images(others, [scale, shift])
    elif y is None:
        u = quantile_apply(others, quantiles, scale, shift, None, None, layer.bandwidth, quantised)
    else:
        u = y[:, layer._image_channels:]
    if not layer.norm_out:
        return u
    scale, shift = blending.norm(layer._running_norm("out"), u).folded(layer.eps)
    shape = [1, -1] + [1] * (x.dim() - 2)
    if y is not None:
        torch.add(u * scale.view(shape), shift.view(shape), out=u)
        return y
    return _joined(layer, images, (u * scale.view(shape) + shift.view(shape)).to(x.dtype), empty)
