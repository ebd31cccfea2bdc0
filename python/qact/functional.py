r"""The operators as functions.

A channel's context is a list of values :math:`z_1 \dots z_n`. The bounds :math:`c` and :math:`-c`
are appended. The values :math:`\ge 0` share a total weight of :math:`p` (``positive_share``), the
values :math:`< 0` a total of :math:`1 - p`. With :math:`q_j` the weighted quantile at
:math:`\tau_j = j / (\text{levels} + 1)`,

.. math:: \mathrm{QAct}(x) = \frac{\#\{j : x \ge q_j\}}{\text{levels}},

and its derivative is taken to be :math:`f(x)`, a Gaussian kernel estimate of the weighted context's
density with standard deviation ``bandwidth``. That is a surrogate: the function itself is a
staircase, so ``torch.autograd.gradcheck`` does not apply to it. The context is held fixed.

Tensors are ``(B, C, ...)``; dimension 1 is the channel. The CPU computes float64 in float64 and all
else in float32. Under autocast a function runs in the type of what it is given.
"""

from typing import Optional

import torch
from torch import Tensor

from . import _autograd
from ._library import ALGORITHMS, CONTEXT_BINS, ops

__all__ = [
    "quantile_activation", "quantile_layer", "quantile_apply", "quantiles", "context_build",
    "context_blend", "context_quantiles", "context_standard_normal",
]


def algorithm_number(name: str) -> int:
    try:
        return ALGORITHMS[name]
    except KeyError:
        raise ValueError(
            f"[qact] expected algorithm auto, exact or binned, got {name!r}") from None


def quantile_activation(x: Tensor, levels: int = 100, bound: float = 100.0,
                        positive_share: float = 0.5, bandwidth: float = 0.5,
                        algorithm: str = "auto", quantised: bool = True, density_samples: int = 0,
                        seed: int = 0) -> Tensor:
    r"""The quantile activation of x, each channel its own context.

    Args:
        x: ``(B, C, ...)``, floating.
        levels: the number of quantiles; the output takes the values 0, 1/levels, ..., 1.
        algorithm: ``exact`` sorts, ``binned`` counts; ``auto`` sorts up to 256 values per channel.
        quantised: False gives the cumulative weight of x instead of its level.
        density_samples: the paper's density, that of so many points drawn by ``seed``; 0: of all.

    Returns:
        A tensor like x.

    >>> import torch, qact
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    >>> qact.functional.quantile_activation(x, levels=4).flatten()
    tensor([0.2500, 0.5000, 0.7500, 1.0000])
    """
    return _autograd.activation(x, (levels, bound, positive_share, bandwidth,
                                    algorithm_number(algorithm), quantised, density_samples, seed))


def quantile_layer(x: Tensor, weight_in: Optional[Tensor] = None, bias_in: Optional[Tensor] = None,
                   weight_out: Optional[Tensor] = None, bias_out: Optional[Tensor] = None,
                   eps: float = 1e-5, levels: int = 100, bound: float = 100.0,
                   positive_share: float = 0.5, bandwidth: float = 0.5, algorithm: str = "auto",
                   track: bool = False, image_channels: int = 0, context_images: int = 0,
                   ) -> tuple[Tensor, Tensor, Tensor]:
    r"""Norm, quantile activation, norm, fused:
    :math:`y = \gamma_2\,N(\mathrm{QAct}(\gamma_1 N(x) + \beta_1)) + \beta_2` with
    :math:`N(v) = (v - \mathrm{E}v) / \sqrt{\mathrm{Var}\,v + \varepsilon}` over each context.

    Args:
        x: ``(B, C, ...)``, floating, with more than one value per context.
        weight_in, bias_in, weight_out, bias_out: ``(C)``; None: 1 and 0.
        levels: at most 255.
        track: also return the batch's context.
        image_channels: so many first channels are ranked and normed within each image.
        context_images: the others within so many consecutive images; 0: within the batch.

    Returns:
        ``(y, stats, context)``: y like x; stats ``(C - image_channels, 8)`` float64, whose first
        four columns are mean and biased variance of x and of the activation; context
        ``(C - image_channels, 256)`` int64 if track, else ``(0, 256)``.

    >>> import torch, qact
    >>> y, stats, context = qact.functional.quantile_layer(torch.randn(64, 3, 5, 5), track=True)
    >>> y.shape, stats.shape, context.shape
    (torch.Size([64, 3, 5, 5]), torch.Size([3, 8]), torch.Size([3, 256]))
    """
    settings = (eps, levels, bound, positive_share, bandwidth, algorithm_number(algorithm),
                image_channels, context_images)
    return _autograd.layer(x, weight_in, bias_in, weight_out, bias_out, settings, track)


def quantile_apply(x: Tensor, quantiles: Tensor, scale: Optional[Tensor] = None,
                   shift: Optional[Tensor] = None, out_scale: Optional[Tensor] = None,
                   out_shift: Optional[Tensor] = None, bandwidth: float = 0.5,
                   quantised: bool = True) -> Tensor:
    r"""Values from outside the context: :math:`z = a x + b` and
    :math:`y = a' \#\{j : z \ge q_j\} / \text{levels} + b'`, per channel.

    Args:
        x: ``(B, C, ...)``; an empty batch is taken, too.
        quantiles: ``(C, levels)`` ascending, float32 or float64.
        scale, shift, out_scale, out_shift: ``(C)``; None: 1 and 0.

    >>> import torch, qact
    >>> q = torch.tensor([[-1.0, 0.0, 1.0]])
    >>> qact.functional.quantile_apply(torch.tensor([[-3.0], [0.5], [1.0]]), q).flatten()
    tensor([0.0000, 0.6667, 1.0000])
    """
    return _autograd.apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised)


def quantiles(x: Tensor, levels: int = 100, bound: float = 100.0,
              positive_share: float = 0.5) -> Tensor:
    """The weighted quantiles of each channel of x, exactly: ``(C, levels)``. No gradient."""
    return ops.quantiles(x.detach(), levels, bound, positive_share)


def context_build(x: Tensor, scale: Optional[Tensor] = None,
                  shift: Optional[Tensor] = None) -> Tensor:
    r"""The context of :math:`z = a x + b`: a histogram over bins that never depend on the data,
    so that contexts of different batches add up exactly. ``(C, 256)`` int64, in units of
    :math:`2^{-16}` values.

    >>> import torch, qact
    >>> a, b = torch.randn(2, 100, 3)
    >>> build = qact.functional.context_build
    >>> torch.equal(build(a) + build(b), build(torch.cat([a, b])))
    True
    """
    # Not by torch.no_grad(): an exported program that has such a part in it does not load.
    scale, shift = (v if v is None else v.detach() for v in (scale, shift))
    return ops.context_build(x.detach(), scale, shift)


def context_blend(running: Tensor, batch: Tensor, *, images: int, n: int,
                  prior: Optional[float] = None, momentum: Optional[float] = None,
                  batches: Optional[Tensor] = None) -> Tensor:
    """A running context after a batch of so many images with n values per channel.

    With ``prior`` it counts as so many images against the batch's; else it moves by ``momentum``,
    or, where there is none, by 1 / (batches + 1). It counts as at least 1,024 values afterwards.
    """
    return ops.context_blend(running, batch, batches, prior, momentum, images, n)


def context_quantiles(context: Tensor, levels: int = 100, bound: float = 100.0,
                      positive_share: float = 0.5) -> Tensor:
    """The weighted quantiles of a context, ``(C, levels)`` float64."""
    return ops.context_quantiles(context, levels, bound, positive_share)


def _standard_normal() -> Tensor:
    row = torch.empty(CONTEXT_BINS, dtype=torch.int64, device="cpu")
    ops.standard_normal(row)
    return row


_STANDARD_NORMAL = _standard_normal()


def context_standard_normal(channels: int, device=None) -> Tensor:
    """What an untrained layer starts with, ``(channels, 256)`` int64."""
    return _STANDARD_NORMAL.to(device or torch.get_default_device()).repeat(channels, 1)
