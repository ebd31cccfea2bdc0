"""The quantile activation as a module: norm, activation, norm, and its running context."""

from typing import Optional

import torch
from torch import Tensor, nn

from ._in_batch import in_batch
from ._in_blend import in_blend
from ._in_tracked import in_tracked
from ._norms import Norm, given
from ._options import CONTEXT_MODES, check_mode, check_options, describe
from ._running import RunningQuantiles
from .functional import algorithm_number, context_standard_normal


class QuantileActivation(nn.Module):
    r"""Norm, quantile activation, norm: :math:`y = \gamma_2 N(\mathrm{QAct}(\gamma_1 N(x) +
    \beta_1)) + \beta_2`, in place of BatchNorm and ReLU. See :mod:`qact.functional` for QAct.

    Training ranks a value in its batch and remembers the batch in the running context. In ``eval()``
    the ``context_mode`` says in what a value is ranked:

    ========= ======================================================================
    tracked   the running context: single samples work and do not see each other
    batch     its own batch: adapts to what it is shown
    prior     the running context, counted as ``prior`` images, blended with the batch's
    stream    the running context, which first moves towards the batch by ``momentum``
    ========= ======================================================================

    Args:
        num_features: C of an input ``(B, C, ...)``.
        levels, bound, positive_share, bandwidth, algorithm: see :mod:`qact.functional`.
        eps: of both norms.
        momentum: of running statistics and context; None: a cumulative average (0.1 in stream).
        affine: whether the norms have a scale and a shift at all.
        affine_in: whether the inner one has. Ranks do not depend on its scale, yet the density
            gives it a gradient: with no layer in front, False is the safer choice.
        norm_in, norm_out: the two norms; the layer is fused if both are on.
        track_running_stats: False: no buffers, and the batch's own context in eval(), too.
        scope: whose values a context is made of: ``batch``, ``image`` (no image sees another) or
            ``group`` (``group_images`` consecutive images; the last group is the remainder).
        image_share: the share of the channels, the first ones, rounded down, whose scope is the
            image in any case. In eval(), too, each image is their context.
        prior: see above.

    Shape:
        ``(B, C, ...)`` to the same. In eval() an empty batch is taken, too.

    All state lives in buffers, whose names and types are those of the C++ module, so that weights
    travel both ways bit for bit. ``context`` and ``num_batches_tracked`` stay int64 in ``.half()``.
    An average of models (EMA) truncates the int64 context; ``update_contexts`` makes it anew.

    >>> import torch, qact
    >>> layer = qact.QuantileActivation(8)
    >>> x = torch.randn(32, 8, 4, 4)
    >>> layer(x).shape, int(layer.num_batches_tracked)
    (torch.Size([32, 8, 4, 4]), 1)
    >>> layer.eval()(x[:1]).shape
    torch.Size([1, 8, 4, 4])
    """

    running_mean_in: Optional[Tensor]
    running_var_in: Optional[Tensor]
    running_mean_out: Optional[Tensor]
    running_var_out: Optional[Tensor]
    context: Optional[Tensor]
    num_batches_tracked: Optional[Tensor]
    weight_in: Optional[nn.Parameter]
    bias_in: Optional[nn.Parameter]
    weight_out: Optional[nn.Parameter]
    bias_out: Optional[nn.Parameter]

    def __init__(self, num_features: int, *, levels: int = 100, bound: float = 100.0,
                 positive_share: float = 0.5, bandwidth: float = 0.5, eps: float = 1e-5,
                 momentum: Optional[float] = 0.1, affine: bool = True, affine_in: bool = True,
                 norm_in: bool = True, norm_out: bool = True, track_running_stats: bool = True,
                 scope: str = "batch", group_images: int = 0, image_share: float = 0.0,
                 algorithm: str = "auto", context_mode: str = "tracked", prior: float = 16.0,
                 device=None, dtype=None) -> None:
        super().__init__()
        self.num_features, self.levels, self.bound = num_features, levels, bound
        self.positive_share, self.bandwidth, self.eps = positive_share, bandwidth, eps
        self.momentum, self.algorithm = momentum, algorithm
        self.affine, self.affine_in = affine, affine_in
        self.norm_in, self.norm_out = norm_in, norm_out
        self.track_running_stats = track_running_stats
        self.scope, self.group_images, self.image_share = scope, group_images, image_share
        self.context_mode, self.prior = context_mode, prior
        check_options(self)
        self._running_quantiles = RunningQuantiles()
        vector = {"device": device, "dtype": dtype}
        absent = []  # torch.export counts on buffers that are None being the last
        for end, norm, learns in (("in", norm_in, affine and affine_in), ("out", norm_out, affine)):
            for name in ("weight_", "bias_"):
                value = nn.Parameter(torch.empty(num_features, **vector)) if norm and learns else None
                self.register_parameter(name + end, value)
            for name in ("running_mean_", "running_var_"):
                if norm and track_running_stats:
                    self.register_buffer(name + end, torch.empty(num_features, **vector))
                else:
                    absent.append(name + end)
        if track_running_stats:
            counts = {"device": device, "dtype": torch.int64}
            self.register_buffer("context", torch.empty(num_features, 256, **counts))
            self.register_buffer("num_batches_tracked", torch.zeros((), **counts))
        else:
            absent += ["context", "num_batches_tracked"]
        for name in absent:
            self.register_buffer(name, None)
        self.reset_parameters()

    @property
    def _fused(self) -> bool:
        return self.norm_in and self.norm_out

    @property
    def _image_channels(self) -> int:
        """The first channels, whose scope is the image."""
        if self.scope == "image":
            return self.num_features
        return int(self.image_share * self.num_features) if self.image_share else 0

    def _rows(self, vector: Optional[Tensor]) -> Optional[Tensor]:
        """The part of the channels with a running context: all but the image's."""
        first = self._image_channels
        return vector if first == 0 or vector is None else vector[first:]

    def _running_norm(self, end: str) -> Norm:
        """The norm called `end` of those channels, in its running statistics."""
        return Norm(given(self._rows(getattr(self, "running_mean_" + end))),
                    given(self._rows(getattr(self, "running_var_" + end))),
                    self._rows(getattr(self, "weight_" + end)),
                    self._rows(getattr(self, "bias_" + end)))

    def _settings(self, image_channels: int) -> tuple:
        """The numbers of the fused layer's schema, from eps to context_images."""
        return (self.eps, self.levels, self.bound, self.positive_share, self.bandwidth,
                algorithm_number(self.algorithm), image_channels, self.group_images)

    def reset_running_stats(self) -> None:
        """Running statistics and context as before any training."""
        if not self.track_running_stats:
            return
        with torch.no_grad():
            if self.norm_in:
                given(self.running_mean_in).zero_()
                given(self.running_var_in).fill_(1)
            if self.norm_out:
                # A uniform activation, which is what an untrained layer's context promises.
                given(self.running_mean_out).fill_(0.5)
                given(self.running_var_out).fill_(1 / 12)
            context = given(self.context)
            if not context.is_meta:
                context.copy_(context_standard_normal(self.num_features, context.device))
            given(self.num_batches_tracked).zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        with torch.no_grad():
            for name, value in (("weight_in", 1), ("bias_in", 0), ("weight_out", 1),
                                ("bias_out", 0)):
                if getattr(self, name) is not None:
                    getattr(self, name).fill_(value)

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs) -> None:
        """A BatchNorm's entries are those of the inner norm; the rest stays as it is. So does the
        number of batches: the context has not seen those of the BatchNorm, and with a cumulative
        average would hardly move after 1,000 of them."""
        if prefix + "running_var" in state_dict or (
                prefix + "weight" in state_dict and prefix + "weight_out" not in state_dict):
            own = {prefix + name: value for name, value in self.state_dict().items()}
            for name in ("weight", "bias", "running_mean", "running_var"):
                value = state_dict.pop(prefix + name, None)
                if value is not None:
                    own[prefix + name + "_in"] = value
            state_dict.pop(prefix + "num_batches_tracked", None)
            for name, value in own.items():
                state_dict.setdefault(name, value)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        parts = [str(self.num_features), f"levels={self.levels}"]
        if not self._fused:
            parts.append(f"norm_in={self.norm_in}, norm_out={self.norm_out}")
        if self.scope != "batch":
            parts.append(f"scope={self.scope}")
        if self.group_images:
            parts.append(f"group_images={self.group_images}")
        if self.image_share:
            parts.append(f"image_share={self.image_share}")
        parts.append(f"context_mode={self.context_mode}")
        return ", ".join(parts)

    def _check_input_dim(self, x: Tensor) -> None:
        if x.dim() < 2:
            raise ValueError(f"[{type(self).__name__}] expected a tensor of 2 or more dimensions, "
                             f"got {describe(x)}")

    def forward(self, x: Tensor) -> Tensor:
        return self._run(x, quantised=True, track=True)

    def rank(self, x: Tensor, track: bool = False) -> Tensor:
        """The cumulative weight of x instead of its level: what is left of the rank once levels
        tie. In the same context as forward. Needs ``norm_out=False``."""
        if self.norm_out:
            raise ValueError(f"[{type(self).__name__}] expected norm_out=False for rank()")
        return self._run(x, quantised=False, track=track)

    def _run(self, x: Tensor, quantised: bool, track: bool) -> Tensor:
        self._check_input_dim(x)
        shape, mode = x.shape, self.context_mode
        if shape[1] != self.num_features:
            raise ValueError(f"[{type(self).__name__}] expected {self.num_features} channels in "
                             f"dimension 1, got {describe(x)}")
        if self.training:
            return in_batch(self, x, quantised, track and self.track_running_stats)
        if shape[0] == 0:
            return x.clone()
        if mode not in CONTEXT_MODES:  # an attribute that anybody may set
            check_mode(type(self).__name__, mode, self.prior)
        if mode == "batch" or not self.track_running_stats:
            return in_batch(self, x, quantised, False)
        if mode == "tracked":
            return in_tracked(self, x, quantised)
        return in_blend(self, x, quantised, track)


class QuantileActivation1d(QuantileActivation):
    """QuantileActivation of ``(B, C)`` and ``(B, C, L)`` alone."""

    _dimensions: tuple[int, ...] = (2, 3)

    def _check_input_dim(self, x: Tensor) -> None:
        if x.dim() not in self._dimensions:
            expected = " or ".join(str(d) for d in self._dimensions)
            raise ValueError(f"[{type(self).__name__}] expected a tensor of {expected} dimensions, "
                             f"got {describe(x)}")


class QuantileActivation2d(QuantileActivation1d):
    """QuantileActivation of ``(B, C, H, W)`` alone."""

    _dimensions = (4,)


class QuantileActivation3d(QuantileActivation1d):
    """QuantileActivation of ``(B, C, D, H, W)`` alone."""

    _dimensions = (5,)
