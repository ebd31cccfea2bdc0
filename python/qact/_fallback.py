r"""The operators in torch's own operations, for devices without kernels (MPS, XPU, ...).

The same mathematics, exactly: contexts are sorted, never binned. A channel's values are ranked by
their cumulative weight: with a rank r among the n values of x's own side, the appended bound
included,

    F(x) = r p / n  (x >= 0, after all of 1 - p),    level(x) = floor(F(x) (levels + 1)),

and the density is a sum of Gaussians over the whole context. That is quadratic in the context, so
it is computed in chunks. Nothing is kept for the backward pass but the statistics.
"""

import math
import warnings

import torch
from torch import Tensor

from ._fake import check_devices
from ._fallback_contexts import (blend, channel_rows, context_blend, context_build,
                                 context_quantiles, count, double_type, real_type)
from ._library import CONTEXT_BINS, CUDA_MISSING, LAYER_STATS, ops

_CHUNK = 1 << 22  # pairs of a value and a context's value at a time
_LIBRARY = torch.library.Library("qact_python", "IMPL")
_warned = False


def warn_once(device: torch.device) -> None:
    global _warned
    if not _warned and device.type != "cpu":
        _warned = True
        warnings.warn(f"[qact] no kernels for {device.type}: the layer works there in torch's own "
                      "operations, slowly", stacklevel=3)


def _like(rows: Tensor, x: Tensor) -> Tensor:
    """Rows back to x's shape, type and layout."""
    moved = rows.reshape(x.shape[1], x.shape[0], *x.shape[2:]).transpose(0, 1)
    out = torch.empty_like(x)
    return out.copy_(moved)


class _Ranked:
    """Contexts (K, n) sorted, NaN last; K contexts at once."""

    def __init__(self, z: Tensor, levels: int, bound: float, positive_share: float) -> None:
        z = z.contiguous()
        self.z, self.levels, self.bound, self.share = z, levels, bound, positive_share
        self.sorted = z.sort(1).values.contiguous()
        self.valid = (~z.isnan()).sum(1, keepdim=True)
        self.negatives = (z < 0).sum(1, keepdim=True)
        self.positives = self.valid - self.negatives

    def weights(self) -> tuple[Tensor, Tensor]:
        """Of a value < 0 and of one >= 0."""
        real = double_type(self.z.device)
        return ((1 - self.share) / (self.negatives + 1).to(real),
                self.share / (self.positives + 1).to(real))

    def cumulative(self) -> Tensor:
        """F of each value of its own context."""
        z = self.z
        below = torch.searchsorted(self.sorted, z, right=True)
        below = torch.minimum(below, self.valid)
        low, high = self.weights()
        rank_low = below + (z >= -self.bound)
        rank_high = below - self.negatives + (z >= self.bound)
        return torch.where(z < 0, rank_low * low, (1 - self.share) + rank_high * high)

    def level(self) -> Tensor:
        # Ranks are whole numbers: a share of them may round to just below a quantile's.
        level = (self.cumulative() * (self.levels + 1) + 1e-9).floor()
        return level.clamp_max(self.levels)

    def activation(self, quantised: bool, x: Tensor) -> Tensor:
        """Laid out as x."""
        u = self.level() / self.levels if quantised else self.cumulative()
        return _like(torch.where(self.z.isnan(), torch.nan, u.to(self.z.dtype)), x)

    def density(self, bandwidth: float) -> Tensor:
        """f of each value of its own context."""
        z, (low, high) = self.z, self.weights()
        weight = torch.where(z < 0, low, high).to(z.dtype)
        weight = torch.where(z.isfinite(), weight, 0)
        centre = torch.where(z.isfinite(), z, 0)
        bounds = z.new_tensor([-self.bound, self.bound]).expand(len(z), 2)
        centre = torch.cat([centre, bounds], 1)
        weight = torch.cat([weight, torch.cat([low, high], 1).to(z.dtype)], 1)
        out = torch.empty_like(z)
        step = max(1, _CHUNK // (centre.shape[0] * centre.shape[1]))
        for i in range(0, z.shape[1], step):
            scaled = (z[:, i:i + step, None] - centre[:, None, :]) / bandwidth
            kernel = torch.exp(-0.5 * scaled.square())
            out[:, i:i + step] = (kernel * weight[:, None, :]).sum(2)
        out = out / (bandwidth * math.sqrt(2 * math.pi))
        return torch.where(z.isinf(), 0, out)


def activation_forward(x, levels, bound, positive_share, bandwidth, algorithm, quantised,
                       density_samples, seed, keep):
    if density_samples:
        raise NotImplementedError("[quantile_activation] expected density_samples=0 on "
                                  f"{x.device.type}, got {density_samples}")
    warn_once(x.device)
    ranked = _Ranked(channel_rows(x), levels, bound, positive_share)
    density = _like(ranked.density(bandwidth), x) if keep else x.new_empty(0)
    return ranked.activation(quantised, x), density


def ranked_by_sorting(x: Tensor, levels: int, bound: float, positive_share: float,
                      quantised: bool) -> Tensor:
    return _Ranked(channel_rows(x), levels, bound, positive_share).activation(quantised, x)


class _Layer:
    """The layer of contexts (K, n), with the affine parameters of each."""

    def __init__(self, x: Tensor, vectors, eps: float, quantile) -> None:
        self.levels, self.bandwidth = quantile[0], quantile[3]
        self.weight_in, self.bias_in, self.weight_out, self.bias_out = (
            None if v is None else v.to(x.dtype)[:, None] for v in vectors)
        self.mean_in, self.var_in = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
        self.scale_in = torch.rsqrt(self.var_in + eps)
        self.xhat = (x - self.mean_in) * self.scale_in
        z = self._affine(self.xhat, self.weight_in, self.bias_in)
        self.ranked = _Ranked(z, *quantile[:3])
        u = self.ranked.level().to(x.dtype) / self.levels
        self.mean_out, self.var_out = u.mean(1, keepdim=True), u.var(1, correction=0, keepdim=True)
        self.scale_out = torch.rsqrt(self.var_out + eps)
        self.yhat = (u - self.mean_out) * self.scale_out
        # One NaN or infinity makes NaN of its context.
        self.yhat = torch.where(x.isfinite().all(1, keepdim=True), self.yhat, torch.nan)

    @staticmethod
    def _affine(v, weight, bias):
        v = v if weight is None else v * weight
        return v if bias is None else v + bias

    def forward(self) -> Tensor:
        return self._affine(self.yhat, self.weight_out, self.bias_out)

    def stats(self) -> Tensor:
        parts = (self.mean_in, self.var_in, self.mean_out, self.var_out)
        found = torch.cat(parts, 1)
        return torch.cat([found, found.new_zeros(len(found), LAYER_STATS - len(parts))], 1)

    def backward(self, dy: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of x, and of the four vectors, (K, 4)."""
        xhat, yhat = self.xhat, self.yhat
        g = dy if self.weight_out is None else dy * self.weight_out
        du = self.scale_out * (g - g.mean(1, keepdim=True)
                               - yhat * (g * yhat).mean(1, keepdim=True))
        dz = du * self.ranked.density(self.bandwidth)
        h = dz if self.weight_in is None else dz * self.weight_in
        dx = self.scale_in * (h - h.mean(1, keepdim=True)
                              - xhat * (h * xhat).mean(1, keepdim=True))
        affine = torch.stack([(dz * xhat).sum(1), dz.sum(1), (dy * yhat).sum(1), dy.sum(1)], 1)
        return dx, affine


def _contexts(x: Tensor, image_channels: int, images: int):
    """(rows of channels, slice of images) of each group of contexts with one size, in order."""
    if image_channels > 0:
        for i in range(x.shape[0]):
            yield slice(0, image_channels), slice(i, i + 1)
    if image_channels < x.shape[1]:
        step = images or x.shape[0]
        for i in range(0, x.shape[0], step):
            yield slice(image_channels, x.shape[1]), slice(i, min(i + step, x.shape[0]))


def _part(vectors, channels: slice):
    return [None if v is None else v[channels] for v in vectors]


def layer_forward(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound, positive_share,
                  bandwidth, algorithm, image_channels, context_images, keep, track):
    warn_once(x.device)
    if x.numel() <= x.shape[1]:
        raise RuntimeError("[quantile_layer] expected more than one value per channel to take "
                           f"statistics from, got shape {tuple(x.shape)}")
    smallest = min(part.numel() // part.shape[1] for part in (
        x[images, channels] for channels, images in _contexts(x, image_channels, context_images)))
    if smallest <= 1:
        raise RuntimeError("[quantile_layer] expected more than one value per context to take "
                           "statistics from, got contexts of one image with one value, in shape "
                           f"{tuple(x.shape)}")
    vectors = (weight_in, bias_in, weight_out, bias_out)
    check_devices("quantile_layer", x.device, "x", weight_in=weight_in, bias_in=bias_in,
                  weight_out=weight_out, bias_out=bias_out)
    quantile = (levels, bound, positive_share, bandwidth)
    rows = x.shape[1] - image_channels
    y = torch.empty_like(x)
    stats = x.new_zeros(rows, LAYER_STATS, dtype=double_type(x.device))
    context = x.new_zeros(rows if track else 0, CONTEXT_BINS, dtype=torch.int64)
    for channels, images in _contexts(x, image_channels, context_images):
        part = x[images, channels]
        layer = _Layer(channel_rows(part), _part(vectors, channels), eps, quantile)
        y[images, channels] = _like(layer.forward(), part)
        if channels.stop == x.shape[1] and channels.start == image_channels:
            stats += layer.stats().to(stats.dtype) * (part.shape[0] / x.shape[0])
            if track:
                context += count(layer.ranked.z)
    return y, x.new_empty(0, dtype=torch.uint8), stats, context


def layer_backward(grad_y, x, kept, stats, weight_in, bias_in, weight_out, eps, levels, bound,
                   positive_share, bandwidth, algorithm, image_channels, context_images):
    if x is None:
        raise RuntimeError(f"[quantile_layer_backward] expected x on {grad_y.device}, got none")
    vectors = (weight_in, bias_in, weight_out, None)
    quantile = (levels, bound, positive_share, bandwidth)
    grad_x = torch.empty_like(x)
    affine = x.new_zeros(x.shape[1], 4, dtype=real_type(x))
    for channels, images in _contexts(x, image_channels, context_images):
        part = x[images, channels]
        layer = _Layer(channel_rows(part), _part(vectors, channels), eps, quantile)
        dx, gradients = layer.backward(channel_rows(grad_y[images, channels]))
        grad_x[images, channels] = _like(dx, part)
        affine[channels] += gradients.to(affine.dtype)
    return grad_x, affine.t().contiguous()


def layer_track(mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
                context_images, images):
    if n <= 1 or n * context_images <= images:
        raise RuntimeError("[layer_track] expected more than one value per context, which has no "
                           f"variance else, got {n} values per channel of {images} images, in "
                           f"contexts of {context_images}")
    values = context_images / images * n
    share = 1.0 / (int(batches) + 1) if momentum is None else momentum
    unbias = values / (values - 1)
    for i, (running, factor) in enumerate(((mean_in, 1), (var_in, unbias), (mean_out, 1),
                                           (var_out, unbias))):
        running.lerp_((stats[:, i] * factor).to(running.dtype), share)
    context.copy_(blend(context, batch, share, max(float(n), 1024.0)))
    batches.add_(1)


def quantiles(x, levels, bound, positive_share):
    return ops.quantiles(x.cpu(), levels, bound, positive_share).to(x.device)


def quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised):
    warn_once(x.device)
    z, level = _placed(x, quantiles, scale, shift)
    u = level / quantiles.shape[1] if quantised else _between(z, level, quantiles.to(z.dtype))
    u = u if out_scale is None else u * out_scale.to(u.dtype)[:, None]
    u = u if out_shift is None else u + out_shift.to(u.dtype)[:, None]
    return _like(torch.where(z.isnan(), z, u), x)


def _placed(x, quantiles, scale, shift) -> tuple[Tensor, Tensor]:
    """z and its level, (C, n)."""
    z = channel_rows(x)
    z = z if scale is None else z * scale.to(z.dtype)[:, None]
    z = z if shift is None else z + shift.to(z.dtype)[:, None]
    q = quantiles.to(z.dtype).contiguous()
    level = torch.searchsorted(q, z.contiguous(), right=True)
    return z, torch.where(z.isnan(), 0, level).to(z.dtype)


def _between(z: Tensor, level: Tensor, quantiles: Tensor) -> Tensor:
    """(level + the share of the way to the next quantile) / (levels + 1). Beyond the last quantile,
    where there is no next one, a distance d counts as d / (1 + d), and below the first one as
    1 / (1 + d)."""
    levels = quantiles.shape[1]
    at = level.long()
    below = quantiles.gather(1, (at - 1).clamp_min(0))
    above = quantiles.gather(1, at.clamp_max(levels - 1))
    past = z - below
    share = torch.where(at == 0, 1 / (1 + (above - z)), past / (above - below))
    outside = torch.where(past.isinf(), 1, past / (1 + past))
    share = torch.where(at == levels, outside, share)
    return (level + share) / (levels + 1)


def quantile_apply_backward(grad_y, x, quantiles, scale, shift, out_scale, bandwidth):
    z, level = _placed(x, quantiles, scale, shift)
    q = quantiles.to(z.dtype)
    levels = q.shape[1]
    k = torch.arange(levels + 1, device=q.device)
    middle = 0.5 * (q[:, (k - 1).clamp_min(0)] + q[:, k.clamp_max(levels - 1)])
    scaled = (middle[:, :, None] - q[:, None, :]) / bandwidth
    density = torch.exp(-0.5 * scaled.square()).mean(2) / (bandwidth * math.sqrt(2 * math.pi))
    f = density.gather(1, level.long())
    f = torch.where(z.isnan(), torch.nan, torch.where(z.isinf(), 0, f))
    dy, rows = channel_rows(grad_y), channel_rows(x)
    dz = dy * f if out_scale is None else dy * out_scale.to(dy.dtype)[:, None] * f
    dz = torch.where(z.isinf(), 0, dz)
    dx = dz if scale is None else dz * scale.to(dz.dtype)[:, None]
    weighted = torch.where(z.isinf(), 0, dz * rows)
    affine = torch.stack([weighted.sum(1), dz.sum(1), (dy * level).sum(1) / levels, dy.sum(1)])
    return _like(dx, x), affine.to(real_type(x))


def layer_tracked(x, quantiles, mean_in, var_in, weight_in, bias_in, mean_out, var_out, weight_out,
                  bias_out, eps, quantised, image_channels, bound, positive_share, algorithm):
    check_devices("layer_tracked", x.device, "x", mean_in=mean_in, var_in=var_in,
                  weight_in=weight_in, bias_in=bias_in, mean_out=mean_out, var_out=var_out,
                  weight_out=weight_out, bias_out=bias_out)
    if image_channels > 0:
        return _half_tracked(x, quantiles, (mean_in, var_in, weight_in, bias_in, mean_out, var_out,
                                            weight_out, bias_out), eps, quantised, image_channels,
                             bound, positive_share, algorithm)

    def folded(mean, var, weight, bias):
        if mean is None:
            return None, None
        scale = torch.rsqrt(var + eps)
        scale = scale if weight is None else scale * weight
        shift = -mean * scale
        return scale, shift if bias is None else shift + bias

    scale, shift = folded(mean_in, var_in, weight_in, bias_in)
    out_scale, out_shift = folded(mean_out, var_out, weight_out, bias_out)
    return ops.quantile_apply(x, quantiles, scale, shift, out_scale, out_shift, 1.0, quantised)


def _half_tracked(x, quantiles, vectors, eps, quantised, first, bound, positive_share, algorithm):
    """The first channels ranked in their image, the others in the running context."""
    affine = _part((*vectors[2:4], *vectors[6:]), slice(0, first))
    if vectors[4] is None:  # an outer norm of the images alone
        vectors = (*vectors[:4], None, None, None, None)
    y = torch.empty_like(x)
    y[:, :first] = ops.layer_forward(
        x[:, :first], *affine, eps, quantiles.shape[1], bound, positive_share, 1.0, algorithm, first,
        0, False, False)[0]
    y[:, first:] = ops.layer_tracked(
        x[:, first:], quantiles, *_part(vectors, slice(first, None)), eps, quantised, 0, bound,
        positive_share, algorithm)
    return y


FALLBACKS = (layer_forward, layer_backward, layer_track, layer_tracked, activation_forward,
             quantiles, quantile_apply, quantile_apply_backward, context_build, context_blend,
             context_quantiles)


def _missing(name: str):
    def refuse(*_):
        raise RuntimeError(f"[{name}] expected tensors on the CPU, got some on CUDA: {CUDA_MISSING}. "
                           "Or move the tensors to the CPU.")

    return refuse


for _function in FALLBACKS:
    # Of any device that has no kernel of its own.
    _LIBRARY.impl(_function.__name__, _function, "CompositeExplicitAutograd")
    if CUDA_MISSING:
        _LIBRARY.impl(_function.__name__, _missing(_function.__name__), "CUDA")
