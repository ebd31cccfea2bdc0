"""The first channels of a QuantileActivation, where they are ranked in their image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import torch
from torch import Tensor

from . import _autograd

if TYPE_CHECKING:
    from .modules import QuantileActivation


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


def halves(layer: QuantileActivation, x: Tensor) -> tuple[Optional[Tensor], Tensor]:
    """The channels whose scope is the image, if any, and the others. Cut in one piece, so that
    their gradients are joined in one."""
    first = layer._image_channels
    if first == 0:
        return None, x
    images, others = x.split([first, x.shape[1] - first], 1)
    return images, others


def joined(layer: QuantileActivation, images: Optional[Tensor], others: Tensor,
           empty: bool = False) -> Tensor:
    return others if images is None else torch.cat([in_images(layer, images, empty), others], 1)
