"""A QuantileActivation in its running context blended with the batch's: the modes prior and stream.
The first channels may be ranked in their image instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Union

import torch
from torch import Tensor

from . import _autograd
from ._fallback_contexts import blend
from ._in_images import halves, in_images, joined, of_no_images
from ._library import ops
from ._norms import Norm, channel_statistics, given
from .functional import algorithm_number, context_build, quantile_apply

if TYPE_CHECKING:
    from .modules import QuantileActivation

_STREAM_MOMENTUM = 0.1  # where a layer's own momentum is a cumulative average


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
    return _autograd.tracked(x, quantiles, vectors, (
        layer.eps, quantised, first, layer.bound, layer.positive_share,
        algorithm_number(layer.algorithm)))


def in_blend(layer: QuantileActivation, x: Tensor, quantised: bool, track: bool,
             batch: Optional[Batch] = None) -> Tensor:
    """batch: none: x alone."""
    if layer._image_channels == layer.num_features:
        return in_images(layer, x)
    batch = Batch(x) if batch is None else batch
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
    images, others = halves(layer, x)
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
    return joined(layer, images, (u * scale.view(shape) + shift.view(shape)).to(x.dtype), empty)
