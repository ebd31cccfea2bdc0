"""A model's activations replaced by quantile activations, call by call."""

from typing import Any, Callable, Optional, Union

import torch
from torch import fx, nn

from ._activations import BATCH_NORM
from ._replaceable import check_hooks
from ._sites import Site, fail, find_sites, input_of
from ._trace import trace
from .modules import (QuantileActivation, QuantileActivation1d, QuantileActivation2d,
                      QuantileActivation3d)

_CLASSES = {2: QuantileActivation1d, 3: QuantileActivation1d, 4: QuantileActivation2d,
            5: QuantileActivation3d}

#: What a placement says of a site: False, or options of its layer.
Choice = Union[bool, dict[str, Any]]


def _split(site: Site) -> Choice:
    # A context of one value has no ranks.
    spatial = len(site.resolution) > 0 and max(site.resolution) > 1
    return {"image_share": 0.5 if spatial else 0.0} if site.early else False


PLACEMENTS: dict[str, Callable[[Site], Choice]] = {
    "split": _split,
    "early": lambda site: site.early and site.trunk,
    "reference": lambda site: site.trunk,
    "all": lambda site: True,
}


def convert(model: nn.Module, example_inputs: Any,
            sites: Union[str, Callable[[Site], Choice]] = "split", **options: Any) -> fx.GraphModule:
    """A copy of the model in which calls of activations are quantile activations of their own.

    The model is traced by torch.fx, so that a module that is called several times (a ResNet block
    has one ReLU for both of its activations) becomes a layer per call. A BatchNorm that feeds one
    such call alone is absorbed: the layer's inner norm takes its parameters, statistics, type and
    name, so that a checkpoint of the model before still loads. (With ``norm_in=False`` it stays where
    it is.) The layer's running context begins as
    that of a standard normal, whatever a checkpoint says of batches: train, or call
    :func:`qact.update_contexts`, before the mode ``tracked``.

    Args:
        model: traceable by torch.fx: no control flow that depends on values, and none on
            ``training`` but in modules of its own, such as DropPath. Layers of this package that it
            has already stay as they are.
        example_inputs: a tensor, or a tuple of them, for the shapes.
        sites: which calls.

            - ``split``: of the early stages, inside blocks, too; half of the channels are ranked in
              their image (``image_share=0.5``)
            - ``early``: of the early stages, on the trunk
            - ``reference``: all on the trunk, as after the residual sums of a ResNet
            - ``all``
            - a function of a :class:`qact.Site` that returns whether, or a dict of options, which
              is a yes

            The early stages are the stem and all up to the next change of the resolution.
        options: of every :class:`qact.QuantileActivation`.

    Raises:
        ValueError: where a chosen call cannot be replaced, nothing was chosen, tracing failed, or
            the model does in ``train()`` what a graph cannot leave out in ``eval()``. A call with
            more than 2 dimensions needs its channels in dimension 1: a convolution, a norm or a
            pool in front of it, or behind it, tells.

    >>> import torch, qact
    >>> from torch import nn
    >>> block = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    >>> model = qact.convert(block, torch.randn(2, 3, 8, 8), sites="reference")
    >>> model.get_submodule("1")
    QuantileActivation2d(8, levels=100, context_mode=tracked)
    """
    choose = _placement(sites)
    traced = trace(model, example_inputs)
    modules = dict(traced.named_modules())
    chosen = 0
    for site in find_sites(traced.graph, modules):
        choice = choose(site)
        extra = choice if isinstance(choice, dict) else {}
        if not choice and choice is not extra:
            continue
        if site.problem is not None:
            fail(site.node, site.problem)
        _replace(traced, site, modules, {**options, **extra})
        chosen += 1
    if chosen == 0:
        raise ValueError(f"[convert] expected calls of activations that {sites!r} chooses, got "
                         "none")
    traced.graph.lint()
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def _placement(sites: Union[str, Callable[[Site], Choice]]) -> Callable[[Site], Choice]:
    if callable(sites):
        return sites
    if not isinstance(sites, str) or sites not in PLACEMENTS:
        raise ValueError(f"[convert] expected sites of {', '.join(PLACEMENTS)} or a function, got "
                         f"{sites!r}")
    return PLACEMENTS[sites]


def _name(traced: fx.GraphModule, site: Site) -> str:
    base = site.name + "_qact" if site.node.op == "call_module" else "qact_" + site.name
    taken = {name for name, _ in traced.named_modules()}
    return next(name for name in (base, *(f"{base}{i}" for i in range(2, len(taken) + 3)))
                if name not in taken)


def _absorb(layer: QuantileActivation, norm: nn.modules.batchnorm._BatchNorm) -> None:
    state = {"weight": norm.weight, "bias": norm.bias, "running_mean": norm.running_mean,
             "running_var": norm.running_var}
    with torch.no_grad():
        for name, value in state.items():
            target = getattr(layer, name + "_in")
            if value is not None and target is not None:
                target.copy_(value)
    for name in ("weight", "bias"):
        own, value = getattr(layer, name + "_in"), state[name]
        if own is not None and value is not None:
            own.requires_grad_(value.requires_grad)


def _replace(traced: fx.GraphModule, site: Site, modules: dict[str, nn.Module],
             options: dict[str, Any]) -> None:
    norm: Optional[BATCH_NORM] = None
    absorbed = site.norm if options.get("norm_in", True) else None
    if site.norm is site.node and absorbed is None:
        fail(site.node, "it is a norm, too, which a layer without norm_in would drop")
    if absorbed is not None:
        module = modules[str(absorbed.target)]
        assert isinstance(module, BATCH_NORM)
        norm = module
        inner = {"eps": norm.eps, "momentum": norm.momentum,
                 "affine_in": options.get("affine_in", norm.affine),
                 "track_running_stats": norm.track_running_stats}
        options = {**inner, **options}
        name, source = str(absorbed.target), input_of(absorbed)
        check_hooks("convert", norm, name)
    else:
        name, source = _name(traced, site), input_of(site.node)
    if site.node.op == "call_module":
        check_hooks("convert", modules[str(site.node.target)], site.name)
    dtype = source.meta["tensor_meta"].dtype
    like = {"device": source.meta["device"], "dtype": dtype if dtype.is_floating_point else None}
    own = None if norm is None else next((v for v in (norm.weight, norm.running_mean)
                                          if v is not None), None)
    if own is not None:
        like = {"device": own.device, "dtype": own.dtype}
    layer = _CLASSES.get(len(site.shape), QuantileActivation)(site.channels, **{**like, **options})
    if norm is not None:
        _absorb(layer, norm)
    layer.train(site.node.meta["training"] if norm is None else norm.training)
    traced.add_submodule(name, layer)
    with traced.graph.inserting_after(site.node):
        call = traced.graph.call_module(name, (source,))
    call.meta.update(site.node.meta)  # its shape and device are what a next layer asks for
    site.node.replace_all_uses_with(call)
    traced.graph.erase_node(site.node)
    if absorbed is not None and absorbed is not site.node:
        traced.graph.erase_node(absorbed)
