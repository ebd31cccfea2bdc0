"""What is set in all layers of a model at once."""

import contextlib
import itertools
from typing import Any, Iterable, Iterator, Optional

import torch
from torch import nn

from ._options import check_mode
from .modules import QuantileActivation


def layers(model: nn.Module) -> Iterator[QuantileActivation]:
    """Every QuantileActivation inside, the model itself included."""
    return (m for m in model.modules() if isinstance(m, QuantileActivation))


class _ContextModes(contextlib.AbstractContextManager):
    """What set_context_mode returns: leaving it as a context manager restores what was before."""

    def __init__(self, before: list[tuple[QuantileActivation, str, float]]) -> None:
        self._before = before

    def __exit__(self, *_: Any) -> None:
        for layer, mode, prior in self._before:
            layer.context_mode, layer.prior = mode, prior


def set_context_mode(model: nn.Module, mode: str, prior: Optional[float] = None) -> _ContextModes:
    """Sets the mode in eval() of every QuantileActivation inside: ``tracked``, ``batch``,
    ``prior`` or ``stream``; and their ``prior``, if one is given. As a context manager, for a while
    only.

    >>> import torch, qact
    >>> model = torch.nn.Sequential(qact.QuantileActivation(4)).eval()
    >>> with qact.set_context_mode(model, "batch"):
    ...     model[0].context_mode
    'batch'
    >>> model[0].context_mode
    'tracked'
    """
    check_mode("set_context_mode", mode, 0.0 if prior is None else prior)
    found = list(layers(model))
    if not found:
        raise ValueError("[set_context_mode] expected a model with a QuantileActivation, got none")
    before = [(layer, layer.context_mode, layer.prior) for layer in found]
    for layer in found:
        layer.context_mode = mode
        layer.prior = layer.prior if prior is None else prior
    return _ContextModes(before)


def reset_running_stats(model: nn.Module) -> None:
    """Running statistics and contexts of every QuantileActivation as before any training."""
    for layer in layers(model):
        layer.reset_running_stats()


@torch.no_grad()
def update_contexts(loader: Iterable[Any], model: nn.Module,
                    device: Optional[torch.device] = None) -> None:
    """Running statistics and contexts anew from a pass over the data: a cumulative average over
    the loader's batches. For QuantileActivation what torch.optim.swa_utils.update_bn does for
    BatchNorm, which knows nothing of these layers; it does both.

    A batch is a tensor, or a list or tuple whose first item is the input. Needed after averaging
    models (EMA, SWA), whose int64 contexts are truncated. Where it raises, all is as it was.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    found: list[nn.Module] = [*layers(model), *norms]
    if not found:
        raise ValueError("[update_contexts] expected a model with a QuantileActivation or a "
                         "BatchNorm, got none")
    was_training = {m: m.training for m in model.modules()}
    momenta = {m: m.momentum for m in found}
    before = [(buffer, buffer.clone()) for layer in found for buffer in layer.buffers()]
    batches = iter(loader)
    # There is one before what was is forgotten.
    first = next(batches, None)
    if first is None:
        raise ValueError("[update_contexts] expected a loader with a batch, got none")
    try:
        model.train()
        for layer in found:
            layer.reset_running_stats()  # type: ignore[operator]
            layer.momentum = None  # type: ignore[assignment]
        for batch in itertools.chain([first], batches):
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    except BaseException:
        for buffer, value in before:
            buffer.copy_(value)
        raise
    finally:
        for layer, momentum in momenta.items():
            layer.momentum = momentum  # type: ignore[assignment]
        for module, training in was_training.items():
            module.training = training
