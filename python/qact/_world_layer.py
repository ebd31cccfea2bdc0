"""The fused layer over several processes. Channels that are ranked in their image need no other
process: they are computed while the first reduction of the others is under way."""

from typing import Optional

import torch
from torch import Tensor

from ._fake import keeps_x
from ._library import ops
from ._ranks import ranks_of, reducing
from ._twice import refusing

_world = torch.ops.qact_world


class _Images:
    """The first channels of a layer, if any, in the scope of the image. Autograd does not look on:
    backward is given what forward kept."""

    def __init__(self, channels: int, settings: tuple) -> None:
        """settings: from eps to the algorithm."""
        self._channels, self._settings = channels, (*settings, channels, 0)

    def forward(self, x: Tensor, vectors: tuple[Optional[Tensor], ...],
                keep: bool) -> tuple[Tensor, tuple[Optional[Tensor], ...]]:
        """y, and what is to be saved: x, if it is needed, and what the operator kept."""
        images = x[:, :self._channels]
        if images.numel() == 0:
            return torch.empty_like(images), (None, None, None)
        y, kept, stats, _ = ops.layer_forward.default(
            images, *self._rows(vectors), *self._settings, keep, False)
        return y, (x if keep and keeps_x(images, kept) else None, kept, stats)

    def backward(self, grad_y: Tensor, saved: tuple[Optional[Tensor], ...],
                 vectors: tuple[Optional[Tensor], ...]) -> tuple[Tensor, Tensor]:
        """The gradients of x and of the vectors."""
        grad = grad_y[:, :self._channels]
        if grad.numel() == 0:
            kind = torch.float64 if grad.dtype == torch.float64 else torch.float32
            return torch.empty_like(grad), grad.new_zeros(4, self._channels, dtype=kind)
        x, kept, stats = saved
        return ops.layer_backward.default(
            grad, None if x is None else x[:, :self._channels], kept, stats, *self._rows(vectors),
            *self._settings)

    def _rows(self, vectors: tuple[Optional[Tensor], ...]) -> list[Optional[Tensor]]:
        return [v if v is None else v[:self._channels] for v in vectors]


class WorldLayer(torch.autograd.Function):
    """y; what has no gradient goes into the list `beside`: stats, context, values. The first
    `image_channels` are ranked in their image. settings: from eps to the algorithm."""

    @staticmethod
    def forward(ctx, x, weight_in, bias_in, weight_out, bias_out, settings, image_channels, keep,
                track, group, beside):
        ranks, vectors = ranks_of(group), (weight_in, bias_in, weight_out, bias_out)
        images = _Images(image_channels, settings)
        parts: list[Tensor] = []
        arguments = (x[:, image_channels:], *_from(image_channels, *vectors), *settings,
                     ranks.rank, ranks.size)
        rounds = torch.empty(0, dtype=torch.uint8)
        while True:
            maxima, sums = _world.next_round(*arguments, rounds)
            if maxima.numel() + sums.numel() == 0:
                break
            with reducing(ranks, sums, maxima):
                if not parts:
                    y_images, saved = images.forward(x, vectors, keep)
                    parts.append(y_images)
            rounds = torch.cat([rounds, maxima.view(torch.uint8), sums.view(torch.uint8)])
        y, kept, stats, context, values = _world.finish(*arguments, rounds, track)
        again = saved[0] is not None  # images are computed anew
        ctx.save_for_backward(kept, *saved, weight_in, bias_in if again else None, weight_out)
        ctx.others = (*settings[:2], values, ranks, image_channels)
        ctx.images = images
        beside.extend((stats, context, values))
        return y if image_channels == 0 else torch.cat([*parts, y], 1)

    @staticmethod
    def backward(ctx, grad_y):
        kept, x, kept_images, stats_images, *vectors = ctx.saved_tensors
        eps, levels, values, ranks, first = ctx.others
        weight_in, _, weight_out = vectors
        arguments = (grad_y[:, first:], kept, *_from(first, weight_in, weight_out), eps, levels)
        with torch.no_grad():
            own = _world.backward_sums(*arguments)
            total = own.clone()
            with reducing(ranks, total):
                of_images = ctx.images.backward(grad_y, (x, kept_images, stats_images), vectors)
            gradients = _world.backward_write(*arguments, own, total, values)
            if first > 0:
                gradients = [torch.cat(halves, 1) for halves in zip(of_images, gradients)]
        grad_x, affine = gradients
        if torch.is_grad_enabled():
            grad_x, affine = refusing("quantile_layer_world", grad_x, affine)
        wanted = (row if needed else None for row, needed in zip(affine, ctx.needs_input_grad[1:5]))
        return (grad_x, *wanted, *(None,) * 6)


def _from(first: int, *vectors: Optional[Tensor]) -> list[Optional[Tensor]]:
    return [v if v is None or first == 0 else v[first:] for v in vectors]
