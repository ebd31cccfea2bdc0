"""Contexts over several processes: every rank of a process group sees the values of all."""

import copy
import math
from typing import Any, Optional

import torch
from torch import Tensor, nn

from ._in_blend import in_blend
from ._in_images import in_images, of_no_images
from ._library import ops
from ._norms import given
from ._options import describe
from ._ranks import BatchOfRanks, Ranks, ranks_of, reduce
from ._world_layer import WorldLayer
from .context_mode import layers
from .modules import QuantileActivation


class SyncQuantileActivation(QuantileActivation):
    """QuantileActivation whose context, where it is the batch's own, is that of all ranks of a
    process group, as torch's SyncBatchNorm takes its statistics. Channels that are ranked in their
    image (``image_share``) stay local.

    Levels, running statistics and running contexts do not depend on how the images are spread over
    ranks, to the last bit; ranks may have different numbers of images, or none. The gradient of the
    input is that of the sum of all ranks' losses, and a rank's gradients of the parameters are those
    of its own loss, which DistributedDataParallel and FSDP average.

    Every forward and backward pass in a batch's own context is collective, and so are those that
    blend with it (``prior``, ``stream``): all ranks call them in the same order. Blended statistics
    are sums in double, whose order depends on the ranks. ``tracked`` in eval() communicates nothing.

    Args:
        process_group: None: all processes. Without ``torch.distributed``, this one alone.
        others: as of QuantileActivation, with both norms and the scope ``batch``. Tensors on the
            CPU, but for ``tracked``, ``prior`` and ``stream``.

    >>> import torch, qact
    >>> layer = qact.SyncQuantileActivation(8, image_share=0.5)
    >>> layer(torch.randn(32, 8, 4, 4)).shape
    torch.Size([32, 8, 4, 4])
    """

    process_group: Optional[Any] = None

    def __init__(self, num_features: int, *, process_group: Optional[Any] = None,
                 **options: Any) -> None:
        super().__init__(num_features, **options)
        self.process_group = process_group
        _check(self)

    def __deepcopy__(self, memo: dict) -> "SyncQuantileActivation":
        """A process group is shared, not copied."""
        if self.process_group is not None:
            memo[id(self.process_group)] = self.process_group
        out = self.__class__.__new__(self.__class__)
        memo[id(self)] = out
        out.__dict__ = copy.deepcopy(self.__dict__, memo)
        return out

    def _run(self, x: Tensor, quantised: bool, track: bool) -> Tensor:
        self._check_input_dim(x)
        if x.shape[1] != self.num_features:
            return super()._run(x, quantised, track)  # which refuses it
        if self.training or self.context_mode == "batch" or not self.track_running_stats:
            return self._in_world(x, track and self.training and self.track_running_stats)
        if self.context_mode in ("prior", "stream") and self._image_channels < self.num_features:
            ranks = ranks_of(self.process_group)
            if ranks.size > 1:
                return self._in_blend(x, quantised, track, ranks)
        if x.shape[0] == 0:
            return of_no_images(x, self._vectors())
        return super()._run(x, quantised, track)

    def _vectors(self) -> list[Optional[Tensor]]:
        return [self.weight_in, self.bias_in, self.weight_out, self.bias_out]

    @torch.compiler.disable
    def _in_blend(self, x: Tensor, quantised: bool, track: bool, ranks: Ranks) -> Tensor:
        batch = BatchOfRanks(x, ranks)
        if batch.images == 0:
            return of_no_images(x, self._vectors())
        return in_blend(self, x, quantised, track, batch)

    @torch.compiler.disable
    def _in_world(self, x: Tensor, track: bool) -> Tensor:
        if x.device.type != "cpu":
            raise RuntimeError(f"[{type(self).__name__}] expected tensors on the CPU, got "
                               f"{describe(x)} on {x.device}: contexts over several processes have "
                               "no CUDA kernels yet")
        first, vectors = self._image_channels, self._vectors()
        if first == self.num_features:
            y = in_images(self, x, empty=x.shape[0] == 0)
            if track:
                with torch.no_grad():
                    given(self.num_batches_tracked).add_(1)
            return y
        if first > 0 and math.prod(x.shape[2:]) == 1:  # also where this rank has no images
            raise RuntimeError(f"[{type(self).__name__}] expected more than one value per image to "
                               f"take statistics from, got {describe(x)}")
        keep = torch.is_grad_enabled() and any(
            tensor is not None and tensor.requires_grad for tensor in (x, *vectors))
        beside: list[Any] = []
        y = WorldLayer.apply(x, *vectors, self._settings(first)[:-2], first, keep, track,
                             self.process_group, beside)
        if track:
            self._track(*beside)
        return y

    def _track(self, stats: Tensor, context: Tensor, values: int) -> None:
        running = [self._rows(buffer) for buffer in (
            self.running_mean_in, self.running_var_in, self.running_mean_out, self.running_var_out,
            self.context)]
        ops.layer_track.default(*running, self.num_batches_tracked, stats, context, self.momentum,
                                values, 1, 1)


def _check(layer: QuantileActivation) -> None:
    if not layer._fused or layer.scope != "batch":
        raise ValueError(
            "[SyncQuantileActivation] expected norm_in, norm_out and the scope batch, got norm_in "
            f"{layer.norm_in}, norm_out {layer.norm_out}, scope {layer.scope}")


#: What takes the place of a subclass with a forward of its own.
SUBCLASSES: dict[type, type] = {}


def _synced(layer: QuantileActivation, process_group: Optional[Any]) -> QuantileActivation:
    kind = type(layer)
    if not isinstance(layer, SyncQuantileActivation):
        kind = SUBCLASSES.get(kind, SyncQuantileActivation)
        if kind is SyncQuantileActivation and any(
                getattr(type(layer), name) is not getattr(QuantileActivation, name)
                for name in ("forward", "_run")):
            raise ValueError("[convert_sync_quantile_activation] expected layers with the forward of "
                             f"QuantileActivation, got a {type(layer).__name__}")
    out = kind.__new__(kind)
    out.__dict__ = dict(layer.__dict__, process_group=process_group)
    return out


def convert_sync_quantile_activation(model: nn.Module,
                                     process_group: Optional[Any] = None) -> nn.Module:
    """Every QuantileActivation of the scope batch becomes a SyncQuantileActivation, with the same
    parameters and buffers; those of the scopes image and group see no other process and stay as
    they are. So do layers without both norms, as a QuantileClassifier's, which go on ranking in the
    batch of their own process. Call it before wrapping the model in DistributedDataParallel or
    FSDP. Returns the model, or what takes the place of a lone layer.

    >>> import torch, qact
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), qact.QuantileActivation(8))
    >>> type(qact.convert_sync_quantile_activation(model)[1]).__name__
    'SyncQuantileActivation'
    """
    found = [layer for layer in layers(model) if layer.scope == "batch"]
    fused = [layer for layer in found if layer._fused]
    if found and not fused:
        _check(found[0])
    # All of them before the first takes its place: an error leaves the model as it was.
    made: dict[nn.Module, nn.Module] = {layer: _synced(layer, process_group) for layer in fused}
    for module in model.modules():
        for name, child in module._modules.items():
            if child in made:
                setattr(module, name, made[child])
    return made.get(model, model)


@torch.no_grad()
def sync_contexts(model: nn.Module, process_group: Optional[Any] = None) -> None:
    """Running statistics and contexts of every QuantileActivation become those of all ranks, where
    each rank tracked its own batches: the mean of the contexts, and the mean and the variance of
    the ranks' mixture. Collective. SyncQuantileActivation has them alike already.

    >>> import qact
    >>> qact.sync_contexts(qact.QuantileActivation(4))  # one process: nothing to do
    """
    ranks = ranks_of(process_group)
    if ranks.size == 1:
        return
    for layer in layers(model):
        if not layer.track_running_stats:
            continue
        context = given(layer.context)
        reduce(ranks, context, given(layer.num_batches_tracked))
        context.floor_divide_(ranks.size)
        for end, norm in (("in", layer.norm_in), ("out", layer.norm_out)):
            if not norm:
                continue
            running_mean = getattr(layer, "running_mean_" + end)
            running_var = getattr(layer, "running_var_" + end)
            mean, var = running_mean.double(), running_var.double()
            sums = torch.stack([mean, var, mean.square()])
            reduce(ranks, sums)
            sums /= ranks.size
            running_mean.copy_(sums[0])
            running_var.copy_(sums[1] + (sums[2] - sums[0].square()).clamp(min=0))
