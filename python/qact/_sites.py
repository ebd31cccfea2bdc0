"""Where a traced model calls its activations, and what is known of each call."""

import dataclasses
import operator
from typing import Any, NoReturn, Optional

import torch
import torch.nn.functional as F
from torch import fx, nn

BATCH_NORM = nn.modules.batchnorm._BatchNorm

MODULES = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.CELU, nn.SELU, nn.SiLU, nn.GELU,
           nn.Mish, nn.Hardswish)
FUNCTIONS = (F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.silu, F.gelu, F.mish,
             F.hardswish, torch.relu, torch.relu_, torch.selu)
METHODS = ("relu", "relu_")

# What leaves every value in its place.
ELEMENTWISE = (nn.Dropout, nn.Dropout1d, nn.Identity, *MODULES, *FUNCTIONS, *METHODS, operator.add,
               operator.iadd, operator.sub, operator.mul, operator.imul, operator.truediv, torch.add,
               torch.sub, torch.mul, "add", "add_", "mul", "mul_", "contiguous", "clone")
CHANNELS_LAST = (nn.Linear, nn.LayerNorm, F.linear, F.layer_norm)


@dataclasses.dataclass
class Site:
    """A call of an activation.

    stage: how often the resolution has changed between the first site and this one.
    early: whether it is of the first stage, or of the first two where the first is a stem alone.
    trunk: whether every path from the input to the output passes through it; else it is inside a
        block, with a path around it.
    """

    node: fx.Node
    name: str  # of the module, or the call's in the graph
    shape: tuple[int, ...]
    norm: Optional[fx.Node]  # the BatchNorm that feeds this call alone
    stage: int = 0
    early: bool = False
    trunk: bool = True

    @property
    def channels(self) -> int:
        return self.shape[1]

    @property
    def resolution(self) -> tuple[int, ...]:
        return self.shape[2:]


class Tracer(fx.Tracer):
    """BatchNorm stays whole, and so does a subclass with an activation of its own (timm has one)."""

    def is_leaf_module(self, m: nn.Module, qualified_name: str) -> bool:
        return isinstance(m, BATCH_NORM) or super().is_leaf_module(m, qualified_name)


def is_activation(module: Any) -> bool:
    return isinstance(module, MODULES)


def norm_with_activation(module: Any) -> bool:
    """A BatchNorm that also activates, as timm's BatchNormAct2d."""
    return isinstance(module, BATCH_NORM) and is_activation(getattr(module, "act", None))


def plain_norm(module: Any) -> bool:
    return isinstance(module, BATCH_NORM) and isinstance(
        getattr(module, "act", nn.Identity()), nn.Identity)


def calls_activation(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        module = modules[str(node.target)]
        return is_activation(module) or norm_with_activation(module)
    if node.op == "call_function":
        return node.target in FUNCTIONS
    return node.op == "call_method" and node.target in METHODS


def _in_place(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return bool(getattr(modules[str(node.target)], "inplace", False))
    if node.op == "call_function":
        return node.target is torch.relu_ or bool(node.kwargs.get("inplace", False))
    return node.target == "relu_"


def _shape(node: fx.Node) -> Optional[tuple[int, ...]]:
    meta = node.meta.get("tensor_meta")
    return tuple(meta.shape) if meta is not None and hasattr(meta, "shape") else None


def _fail(node: fx.Node, why: str) -> NoReturn:
    raise ValueError(f"[convert] expected an activation that can be replaced, got '{node}' "
                     f"({node.format_node()}): {why}")


def _kind(node: fx.Node, modules: dict[str, nn.Module]) -> Any:
    """Of what is called: a module's type, a function, or a method's name."""
    return type(modules[str(node.target)]) if node.op == "call_module" else node.target


def _is_of(kind: Any, kinds: tuple) -> bool:
    if isinstance(kind, type):
        return issubclass(kind, tuple(k for k in kinds if isinstance(k, type)))
    return kind in kinds


def _channels_come_last(node: fx.Node, modules: dict[str, nn.Module], seen: set[fx.Node]) -> bool:
    """Whether its values come from a Linear or a LayerNorm, in their places."""
    if node in seen or node.op not in ("call_module", "call_function", "call_method"):
        return False
    seen.add(node)
    kind = _kind(node, modules)
    return _is_of(kind, CHANNELS_LAST) or _is_of(kind, ELEMENTWISE) and any(
        _channels_come_last(source, modules, seen) for source in node.all_input_nodes)


def _check_whole(node: fx.Node, modules: dict[str, nn.Module]) -> None:
    """Raises for a module that is not looked into, yet activates."""
    module = modules[str(node.target)]
    inside = any(is_activation(m) for m in module.modules() if m is not module)
    activation = getattr(module, "activation", None)
    if not isinstance(module, BATCH_NORM) and (
            inside or activation in FUNCTIONS or is_activation(activation)):
        _fail(node, f"torch.fx does not look into {type(module).__name__}, which has activations")


def _checked_shape(node: fx.Node, source: fx.Node,
                   modules: dict[str, nn.Module]) -> tuple[int, ...]:
    """Of the input. Raises where a layer would not rank channels, or would not mean the same."""
    shape = _shape(source)
    if shape is None or len(shape) < 2:
        _fail(node, f"its input is no tensor of (B,C,...), but of shape {shape}")
    if len(shape) > 2 and _channels_come_last(source, modules, set()):
        _fail(node, "after a Linear or LayerNorm, whose channels come last, dimension 1 of "
                    f"{shape} is no channel")
    if _in_place(node, modules) and any(user is not node for user in source.users):
        order = list(node.graph.nodes)
        if any(order.index(user) > order.index(node) for user in source.users if user is not node):
            _fail(node, "it works in place, and others read its input afterwards")
    return shape


def find_sites(graph: fx.Graph, modules: dict[str, nn.Module]) -> list[Site]:
    """All calls of activations, in their order. Shapes must have been propagated."""
    nodes = list(graph.nodes)
    calls_of: dict[str, list[fx.Node]] = {}
    for node in nodes:
        if node.op == "call_module":
            _check_whole(node, modules)
            calls_of.setdefault(node.target, []).append(node)
    sites = []
    for node in nodes:
        if not calls_activation(node, modules):
            continue
        source = node.args[0] if node.args else node.kwargs["input"]
        norm: Optional[fx.Node] = None
        module = modules.get(str(node.target)) if node.op == "call_module" else None
        if norm_with_activation(module):
            norm, source = node, node.args[0]
        elif (source.op == "call_module" and plain_norm(modules[source.target])
              and len(source.users) == 1 and len(calls_of[source.target]) == 1):
            norm = source
        shape = _checked_shape(node, source, modules)
        name = str(node.target) if node.op == "call_module" else node.name
        sites.append(Site(node, name, shape, norm))
    _find_stages(sites)
    _find_trunk(nodes, sites)
    return sites


def _find_stages(sites: list[Site]) -> None:
    for before, site in zip(sites, sites[1:]):
        site.stage = before.stage + (site.resolution != before.resolution)
    stem_alone = sum(site.stage == 0 for site in sites) == 1
    for site in sites:
        site.early = site.stage <= (1 if stem_alone else 0)


def _find_trunk(nodes: list[fx.Node], sites: list[Site]) -> None:
    """A call is on the trunk if no edge between tensors passes it by."""
    order = {node: i for i, node in enumerate(nodes)}
    last_use = {node: max((order[user] for user in node.users if _shape(user) is not None),
                          default=order[node])
                for node in nodes if node.op != "get_attr" and _shape(node) is not None}
    for site in sites:
        place = order[site.node]
        start = order[site.norm] if site.norm is not None else place
        site.trunk = all(last <= place for node, last in last_use.items() if order[node] < start)
