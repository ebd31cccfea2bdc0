"""What CUDA's kernels do not take, in terms of what they do.

They rank in contexts of the whole batch, with levels that fit a byte. Other scopes are reshaped into
such contexts: an image's are copied into channels of their own, and some images are a call of their
own. More levels, or none, are ranked by sorting. Nothing here knows its device.
"""

from typing import Optional

import torch
from torch import Tensor

from ._fake import kept_bytes
from ._fallback import ranked_by_sorting
from ._library import CONTEXT_BINS, CUDA_MISSING, LAYER_STATS, ops
from ._options import MOST_LAYER_LEVELS

_Vectors = tuple[Optional[Tensor], ...]


def _as_channels(x: Tensor) -> Tensor:
    """(B, C, ...) as (1, B * C, ...): every image's channels become channels of one image."""
    return x.contiguous().view(1, x.shape[0] * x.shape[1], *x.shape[2:])


def _of_channels(vectors: _Vectors, channels: slice, times: int = 1) -> list[Optional[Tensor]]:
    return [None if v is None else v[channels].repeat(times) for v in vectors]


def _images_of(x: Tensor, context_images: int) -> int:
    """Of a context outside the image's own channels."""
    return min(context_images, x.shape[0]) if context_images else x.shape[0]


def layer_forward_in_scope(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound,
                           positive_share, bandwidth, algorithm, image_channels, context_images,
                           keep, track):
    vectors = (weight_in, bias_in, weight_out, bias_out)
    numbers = (eps, levels, bound, positive_share, bandwidth, algorithm, 0, 0)
    batch, first = x.shape[0], image_channels
    rows, images = x.shape[1] - first, _images_of(x, context_images)
    y = torch.empty_like(x)
    keep = keep and kept_bytes(x, image_channels, context_images) > 0
    if first:
        part = y[:, :first]
        part.copy_(ops.layer_forward(
            _as_channels(x[:, :first]), *_of_channels(vectors, slice(0, first), batch), *numbers,
            False, False)[0].view(part.shape))
    kept = x.new_empty(0, dtype=torch.uint8)
    stats = x.new_zeros(rows, LAYER_STATS, dtype=torch.float64)
    context = x.new_zeros(rows if track else 0, CONTEXT_BINS, dtype=torch.int64)
    own = _of_channels(vectors, slice(first, None))
    for start in range(0, batch if rows else 0, images):
        some = slice(start, start + images)
        part = x[some, first:]
        found, kept, of, counts = ops.layer_forward(part, *own, *numbers, keep and images == batch,
                                                    track)
        y[some, first:] = found
        stats += of * (part.shape[0] / batch)
        if track:
            context += counts
    return y, kept, stats, context


def _backward_again(grad_y: Tensor, x: Tensor, vectors, numbers) -> tuple[Tensor, Tensor]:
    y, kept, stats, _ = ops.layer_forward(x, *vectors, None, *numbers, True, False)
    grad_y = torch.empty_like(y).copy_(grad_y)  # codes lie in the order of y
    return ops.layer_backward(grad_y, x, kept, stats, *vectors, *numbers)


def layer_backward_in_scope(grad_y, x, kept, stats, weight_in, bias_in, weight_out, eps, levels,
                            bound, positive_share, bandwidth, algorithm, image_channels,
                            context_images):
    vectors = (weight_in, bias_in, weight_out)
    numbers = (eps, levels, bound, positive_share, bandwidth, algorithm, 0, 0)
    batch, first = x.shape[0], image_channels
    rows, images = x.shape[1] - first, _images_of(x, context_images)
    grad_x = torch.empty_like(x)
    affine = x.new_zeros(4, x.shape[1], dtype=torch.promote_types(x.dtype, torch.float32))
    if first:
        of_x, of_affine = _backward_again(
            _as_channels(grad_y[:, :first]), _as_channels(x[:, :first]),
            _of_channels(vectors, slice(0, first), batch), numbers)
        grad_x[:, :first] = of_x.view(grad_x[:, :first].shape)
        affine[:, :first] = of_affine.view(4, batch, first).sum(1)
    own = _of_channels(vectors, slice(first, None))
    if rows and images == batch and kept.numel():
        grad_x[:, first:], affine[:, first:] = ops.layer_backward(
            grad_y[:, first:], x[:, first:], kept, stats, *own, *numbers)
    elif rows:
        for start in range(0, batch, images):
            some = slice(start, start + images)
            of_x, of_affine = _backward_again(grad_y[some, first:], x[some, first:], own, numbers)
            grad_x[some, first:] = of_x
            affine[:, first:] += of_affine
    return grad_x, affine


def activation_forward(x, levels, bound, positive_share, bandwidth, algorithm, quantised,
                       density_samples, seed, keep):
    if density_samples:
        raise NotImplementedError("[quantile_activation] expected density_samples=0 on CUDA, where "
                                  f"the whole context is used, got {density_samples}")
    sorts = levels > MOST_LAYER_LEVELS or not quantised
    y = density = x.new_empty(0)
    if keep or not sorts:  # the density does not depend on the levels
        y, density = ops.activation_kernel(x, min(levels, MOST_LAYER_LEVELS), bound, positive_share,
                                           bandwidth, algorithm, keep)
    if sorts:
        y = ranked_by_sorting(x, levels, bound, positive_share, quantised)
    return y, density


if not CUDA_MISSING:
    _LIBRARY = torch.library.Library("qact_python", "FRAGMENT")
    for _function, _of in ((layer_forward_in_scope, ops.layer_forward),
                           (layer_backward_in_scope, ops.layer_backward)):
        _schema = str(_of.default._schema).split("(", 1)[1]
        _LIBRARY.define(f"{_function.__name__}({_schema}")
        _LIBRARY.impl(_function.__name__, _function, "CUDA")
    _LIBRARY.impl("activation_forward", activation_forward, "CUDA")
