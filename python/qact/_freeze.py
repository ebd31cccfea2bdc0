"""Running contexts as constants, for inference."""

import copy
from typing import Callable, Optional

import torch
from torch import Tensor, nn

from . import _autograd
from ._fallback_contexts import double_type
from ._norms import given
from ._replaceable import check_hooks, has_forward_of_this_package
from .functional import context_quantiles
from .modules import QuantileActivation


class _WithoutGradient(torch.autograd.Function):
    """y as it is, made of x by operators that have no gradient: asking for it is an error instead
    of 0."""

    @staticmethod
    def forward(ctx, x, y):
        return y.view_as(y)

    @staticmethod
    def backward(ctx, grad_y):
        raise RuntimeError("[freeze] expected no gradient to be asked of a model that was frozen "
                           "with portable=True, got one: portable=False has gradients")


class FrozenQuantileActivation(nn.Module):
    r"""A QuantileActivation in the mode ``tracked`` whose context, statistics and parameters are
    constants: per channel a scale and a shift, the quantiles, and the output of every level.

    With ``portable`` it is made of torch's own operators alone, a binary search in
    :math:`\log_2 \text{levels}` steps, for ONNX and for places without this package. Those have no
    gradient: asking for the input's is an error, and in a compiled or exported program it is 0.
    Shapes as QuantileActivation.
    """

    thresholds: Tensor
    scale: Optional[Tensor]
    shift: Optional[Tensor]
    out_scale: Optional[Tensor]
    out_shift: Optional[Tensor]
    outputs: Tensor
    channel: Tensor
    steps: list[int]

    def __init__(self, layer: QuantileActivation, portable: bool = False) -> None:
        super().__init__()
        if not layer.track_running_stats:
            raise ValueError("[freeze] expected layers with running contexts, got one with "
                             "track_running_stats=False")
        self.first = layer._image_channels  # ranked in their image: no constants for them
        if self.first and portable:
            raise ValueError("[freeze] expected layers without channels that are ranked in their "
                             f"image for portable=True, got {self.first} of them")
        self.portable, self.levels, self.bandwidth = portable, layer.levels, layer.bandwidth
        self.num_features, self.norm_out = layer.num_features, layer.norm_out
        self.register_buffer("thresholds", None)
        for name in ("scale", "shift", "out_scale", "out_shift"):
            self.register_buffer(name, None)
        if self.first < self.num_features:
            self._fold(layer)
        if self.first:
            self.settings = (*layer._settings(self.first)[:-1], 0)
            for name in ("weight_in", "bias_in", "weight_out", "bias_out"):
                value = getattr(layer, name)
                self.register_buffer(
                    name, None if value is None else value.detach()[:self.first].clone())

    @torch.no_grad()
    def _fold(self, layer: QuantileActivation) -> None:
        quantiles = context_quantiles(given(layer._rows(layer.context)), layer.levels, layer.bound,
                                      layer.positive_share)
        if layer.norm_in:
            self.scale, self.shift = layer._running_norm("in").folded(layer.eps)
        if layer.norm_out:
            self.out_scale, self.out_shift = layer._running_norm("out").folded(layer.eps)
        self.thresholds = quantiles
        if self.portable:
            self._make_tables(quantiles)

    def _make_tables(self, quantiles: Tensor) -> None:
        channels, levels = quantiles.shape
        self.steps = [1 << k for k in reversed(range(levels.bit_length()))]
        size = 2 * self.steps[0]
        real = torch.float64 if self._real() == torch.float64 else torch.float32
        padded = torch.full((channels, size), torch.inf, dtype=real)
        padded[:, :levels] = quantiles
        level = torch.arange(levels + 1, dtype=torch.float64) / levels
        scale = torch.ones(channels) if self.out_scale is None else self.out_scale
        shift = torch.zeros(channels) if self.out_shift is None else self.out_shift
        outputs = level * scale.double()[:, None] + shift.double()[:, None]
        self.thresholds = padded.flatten()
        self.register_buffer("outputs", outputs.to(real).flatten())
        self.register_buffer("channel", torch.arange(channels))

    def _real(self) -> torch.dtype:
        return torch.float32 if self.scale is None else self.scale.dtype

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        """Quantiles stay float32 or float64 in .half(), where half of their digits would merge levels
        (portable tables follow). They become float32 on a device that has no float64."""
        if self.thresholds is not None and self.thresholds.dtype == torch.float64:
            self.thresholds = self.thresholds.to(
                double_type(fn(self.thresholds.new_empty(0, dtype=torch.float32)).device))
        before = self.thresholds
        super()._apply(fn, recurse)
        if not self.portable and before is not None and self.thresholds.dtype.itemsize < 4:
            self.thresholds = before.to(self.thresholds.device)
        return self

    def extra_repr(self) -> str:
        return f"{self.num_features}, levels={self.levels}, portable={self.portable}"

    def forward(self, x: Tensor) -> Tensor:
        if self.portable:
            return self._search(x)
        first = self.first
        if first == 0:
            return self._among_quantiles(x)
        vectors = (self.weight_in, self.bias_in, self.weight_out, self.bias_out)
        images, others = x.split([first, self.num_features - first], 1)
        y = _autograd.layer(images, *vectors, self.settings, False)[0]
        return y if first == self.num_features else torch.cat([y, self._among_quantiles(others)], 1)

    def _among_quantiles(self, x: Tensor) -> Tensor:
        return _autograd.apply(x, self.thresholds, self.scale, self.shift, self.out_scale,
                               self.out_shift, self.bandwidth, True)

    def rank(self, x: Tensor) -> Tensor:
        """As QuantileActivation.rank."""
        if self.norm_out:
            raise ValueError(f"[{type(self).__name__}] expected norm_out=False for rank()")
        if not self.portable:
            return _autograd.apply(x, self.thresholds, self.scale, self.shift, None, None,
                                   self.bandwidth, False)
        z, level, row = self._levels(x)
        below = self.thresholds[row + (level - 1).clamp_min(0)].double()
        above = self.thresholds[row + level.clamp_max(self.levels - 1)].double()
        past = z - below
        share = torch.where(level == 0, 1 / (1 + (above - z)), past / (above - below))
        outside = torch.where(past.isinf(), 1, past / (1 + past))
        share = torch.where(level == self.levels, outside, share)
        u = (level + share) / (self.levels + 1)
        return self._portable_output(x, torch.where(z.isnan(), z, u))

    def _search(self, x: Tensor) -> Tensor:
        z, level, _ = self._levels(x)
        channel = self.channel.view(self._per_channel(x))
        y = self.outputs[channel * (self.levels + 1) + level]
        return self._portable_output(x, torch.where(torch.isnan(z), z, y))

    def _per_channel(self, x: Tensor) -> list[int]:
        return [1, -1] + [1] * (x.dim() - 2)

    def _levels(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """z, its level, and where its channel's thresholds begin."""
        shape = self._per_channel(x)
        z = x.detach().to(self.thresholds.dtype)
        if self.scale is not None:
            z = z * self.scale.view(shape) + given(self.shift).view(shape)
        row = self.channel.view(shape) * (2 * self.steps[0])
        level = torch.zeros_like(z, dtype=torch.int64)
        for step in self.steps:
            reached = z >= self.thresholds[row + level + (step - 1)]
            level = level + step * reached.to(torch.int64)
        return z, level.clamp_max(self.levels), row  # an infinity is beyond the padding, too

    def _portable_output(self, x: Tensor, y: Tensor) -> Tensor:
        y = y.to(x.dtype)
        if torch.is_grad_enabled() and x.requires_grad and _autograd.plain():
            return _WithoutGradient.apply(x, y)
        return y


def _check(layer: QuantileActivation, name: str) -> None:
    check_hooks("freeze", layer, name)
    if not has_forward_of_this_package(layer):
        raise ValueError("[freeze] expected layers with the forward of QuantileActivation, got a "
                         f"{type(layer).__name__} '{name}'")


def freeze(model: nn.Module, portable: bool = False) -> nn.Module:
    """A copy of the model, in eval(), with every QuantileActivation in its running context as a
    constant: fast, and exportable.

    Args:
        portable: torch's own operators alone, for ONNX and for places without this package. There
            are no gradients through them.

    >>> import torch, qact
    >>> model = torch.nn.Sequential(qact.QuantileActivation(4))
    >>> x = torch.randn(32, 4)
    >>> _ = model(x)
    >>> torch.equal(qact.freeze(model)(x), model.eval()(x))
    True
    """
    if isinstance(model, QuantileActivation):
        _check(model, "")
        return FrozenQuantileActivation(model, portable).eval()
    frozen = copy.deepcopy(model).eval()
    found = [(name, m) for name, m in frozen.named_modules(remove_duplicate=False)
             if isinstance(m, QuantileActivation)]
    if not found:
        raise ValueError("[freeze] expected a model with a QuantileActivation, got none")
    made: dict[nn.Module, nn.Module] = {}  # a layer may have several names
    for name, layer in found:
        _check(layer, name)
        if layer not in made:
            made[layer] = FrozenQuantileActivation(layer, portable).eval()
        frozen.set_submodule(name, made[layer])
    return frozen
