"""A model as a graph of calls that mean in train() and in eval() what the model means."""

import copy
from typing import Any, Iterable, Optional

import torch
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.multiprocessing.reductions import StorageWeakRef

from ._activations import BATCH_NORM, activates
from ._freeze import FrozenQuantileActivation
from ._options import describe
from ._replaceable import check_hooks
from .classifier import QuantileClassifier
from .modules import QuantileActivation

_WHOLE = (BATCH_NORM, QuantileActivation, QuantileClassifier, FrozenQuantileActivation)


class _Tracer(fx.Tracer):
    """BatchNorm stays whole, and so does a subclass with an activation of its own (timm has one),
    this package's layers, and the modules that are named."""

    def __init__(self, whole: Iterable[str] = ()) -> None:  # none of them: how pickles are read
        super().__init__()
        self.whole = frozenset(whole)
        self.inside = [""]  # the modules that are being looked into
        self.looked_into: dict[str, nn.Module] = {}
        self.owner: dict[fx.Node, str] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return (isinstance(m, _WHOLE) or module_qualified_name in self.whole
                or super().is_leaf_module(m, module_qualified_name))

    def call_module(self, m, forward, args, kwargs):
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return super().call_module(m, forward, args, kwargs)
        self.looked_into[name] = m
        self.inside.append(name)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.inside.pop()

    def create_node(self, *args, **kwargs):
        node = super().create_node(*args, **kwargs)
        self.owner[node] = self.inside[-1]
        return node


class _Traced:
    """A copy of the model, traced as if all of it were training, or none."""

    def __init__(self, model: nn.Module, training: bool, whole: Iterable[str]) -> None:
        self.model = copy.deepcopy(model)
        for module in self.model.modules():
            module.training = training
        tracer = _Tracer(whole)
        try:
            self.graph = tracer.trace(self.model)
        except Exception as error:
            raise ValueError(f"[convert] expected a model that torch.fx can trace, got "
                             f"{type(model).__name__}: {error}") from error
        self.owner, self.looked_into = tracer.owner, {"": self.model, **tracer.looked_into}

    def calls(self) -> list[str]:
        return [_call(node, str) for node in self.graph.nodes]

    def calls_of(self) -> dict[str, list[str]]:
        """By the module that makes them, wherever their inputs come from."""
        found: dict[str, list[str]] = {}
        for node in self.graph.nodes:
            if node.op != "output":
                found.setdefault(self.owner[node], []).append(_call(node, lambda _: "_"))
        return found

    def may_stay_whole(self, name: str) -> bool:
        modules = dict(self.model.named_modules())
        return (name != "" and not list(modules[name].children())
                and not any(activates(node, modules)
                            for node in self.graph.nodes if self.owner[node] == name))


def _call(node: fx.Node, of_input: Any) -> str:
    target: Any = node.target
    if callable(target):
        target = f"{getattr(target, '__module__', None)}.{getattr(target, '__name__', target)}"
    return f"{target} {fx.node.map_arg((node.args, node.kwargs), of_input)}"


def _trace_both(model: nn.Module) -> _Traced:
    """Modules that do other things in train() than in eval(), such as DropPath, stay whole. Where
    that cannot be, the graph would do one of the two for ever."""
    whole: set[str] = set()
    while True:
        train, evaluation = (_Traced(model, training, whole) for training in (True, False))
        if train.calls() == evaluation.calls():
            return train
        ours, theirs = train.calls_of(), evaluation.calls_of()
        differing = {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
        stuck = sorted(name for name in differing
                       if not (train.may_stay_whole(name) and evaluation.may_stay_whole(name)))
        if stuck or not differing:
            where = f"module '{stuck[0]}'" if stuck and stuck[0] else type(model).__name__
            calls = (set(ours.get(name, [])) ^ set(theirs.get(name, [])) for name in stuck[:1])
            what = "; ".join(sorted(next(calls, set()))) or "other inputs"
            raise ValueError(
                "[convert] expected the same calls in train() and in eval(), since the graph cannot "
                f"tell them apart, got different ones in {where} ({what}): make what depends on "
                "training a module of its own, as nn.Dropout is")
        whole |= differing


class _Propagate(ShapeProp):
    """Notes shapes, devices, and which tensors share their memory."""

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        tensors = [t for t in (result if isinstance(result, (tuple, list)) else [result])
                   if isinstance(t, Tensor)]
        # A storage that is referred to weakly keeps its address to itself.
        self.kept.extend(refs := [StorageWeakRef(t.untyped_storage()) for t in tensors])
        n.meta["storages"] = {ref.cdata for ref in refs}
        n.meta["device"] = tensors[0].device if tensors else None
        return result

    def propagate(self, *args):
        self.kept: list[StorageWeakRef] = []
        return super().propagate(*args)


def shape_of(node: fx.Node) -> Optional[tuple[int, ...]]:
    """Of a tensor; of anything else None."""
    meta = node.meta.get("tensor_meta")
    return tuple(meta.shape) if meta is not None and hasattr(meta, "shape") else None


def _described(value: Any) -> str:
    return describe(value) if isinstance(value, Tensor) else type(value).__name__


def trace(model: nn.Module, example_inputs: Any) -> fx.GraphModule:
    found = _trace_both(model)
    for name, module in found.looked_into.items():
        check_hooks("convert", module, name)
    before = dict(model.named_modules())
    mode = {name: m.training for name, m in model.named_modules(remove_duplicate=False)}
    traced = fx.GraphModule(found.model, found.graph, type(model).__name__)
    inputs = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    try:
        with torch.no_grad():
            _Propagate(traced.eval()).propagate(*inputs)
    except Exception as error:
        raise ValueError("[convert] expected example_inputs that the model takes, got "
                         f"{', '.join(_described(x) for x in inputs)}: {error.__cause__ or error}"
                         ) from error
    for name, after in traced.named_modules():
        # The tracer makes folders of modules anew, as if they were training, and their tensors
        # as if all were part of the state.
        of = before.get(name, model)
        after.training = of.training
        after._non_persistent_buffers_set |= {
            buffer for buffer in after._buffers
            if buffer not in of._buffers or buffer in of._non_persistent_buffers_set}
    owner = {node.name: name for node, name in found.owner.items()}
    for node in traced.graph.nodes:  # of the module that is called, or that calls a function
        node.meta["training"] = mode[str(node.target) if node.op == "call_module"
                                     else owner[node.name]]
    return traced
