"""Where a traced model calls its activations, and what is known of each call."""

import dataclasses
from typing import NoReturn, Optional

from torch import fx, nn

from ._activations import activates, hides_activation, in_place, norm_with_activation, plain_norm
from ._channels import Channels
from ._trace import shape_of


@dataclasses.dataclass
class Site:
    """A call of an activation.

    stage: how often the resolution has changed between the first site and this one.
    early: whether it is of the first stage, or of the first two where the first is a stem alone.
    trunk: whether every path from the input to the output passes through it; else it is inside a
        block, with a path around it.
    problem: why it cannot be replaced, if so. Choosing it is an error.
    """

    node: fx.Node
    name: str  # of the module, or the call's in the graph
    shape: tuple[int, ...]
    norm: Optional[fx.Node]  # the BatchNorm that feeds this call alone
    stage: int = 0
    early: bool = False
    trunk: bool = True
    problem: Optional[str] = None

    @property
    def channels(self) -> int:
        return self.shape[1]

    @property
    def resolution(self) -> tuple[int, ...]:
        return self.shape[2:]


def input_of(node: fx.Node) -> fx.Node:
    """Of a call of one tensor."""
    source = node.args[0] if node.args else node.kwargs.get("input", next(iter(node.all_input_nodes)))
    assert isinstance(source, fx.Node)
    return source


def fail(node: fx.Node, why: str) -> NoReturn:
    raise ValueError(f"[convert] expected an activation that can be replaced, got '{node}' "
                     f"({node.format_node()}): {why}")


def _place_problem(source: fx.Node, shape: tuple[int, ...], channels: Channels) -> Optional[str]:
    if len(shape) == 2 or channels.come_first(source):
        return None
    found = channels.dimension(source)
    if found is None:
        return (f"nothing tells that dimension 1 of {shape} has the channels, as a convolution or a "
                "BatchNorm in front of it would")
    last = ", after a Linear or LayerNorm, whose channels come last,"
    return (f"its channels are in dimension {found}{last if found == len(shape) - 1 else ''} and not "
            f"in dimension 1 of {shape}")


def _alias_problem(node: fx.Node, source: fx.Node) -> Optional[str]:
    """It works in place, on memory that others read afterwards, by whatever name."""
    order = {other: i for i, other in enumerate(node.graph.nodes)}
    result = {node}  # and what is made of it
    for other in node.graph.nodes:
        if result.intersection(other.all_input_nodes):
            result.add(other)
    memory = source.meta.get("storages", set())
    for other in node.graph.nodes:
        if other not in result and memory & other.meta.get("storages", set()) and any(
                order[user] > order[node] for user in other.users):
            return "it works in place, and others read its input afterwards"
    return None


def find_sites(graph: fx.Graph, modules: dict[str, nn.Module]) -> list[Site]:
    """All calls of activations, in their order. Shapes must have been propagated."""
    nodes, channels = list(graph.nodes), Channels(modules)
    calls_of: dict[str, list[fx.Node]] = {}
    for node in nodes:
        if node.op == "call_module":
            module = modules[str(node.target)]
            if hides_activation(module):
                fail(node, f"torch.fx does not look into {type(module).__name__}, which has "
                           "activations")
            calls_of.setdefault(node.target, []).append(node)
    sites = []
    for node in nodes:
        if not activates(node, modules):
            continue
        source, norm = input_of(node), None
        if node.op == "call_module" and norm_with_activation(modules[str(node.target)]):
            norm = node
        elif (source.op == "call_module" and plain_norm(modules[str(source.target)])
              and len(source.users) == 1 and len(calls_of[str(source.target)]) == 1):
            norm = source
        shape = shape_of(source)
        if shape is None or len(shape) < 2:
            fail(node, f"its input is no tensor of (B,C,...), but of shape {shape}")
        problem = None if norm is not None else _place_problem(source, shape, channels)
        if problem is None and in_place(node, modules):
            problem = _alias_problem(node, source)
        name = str(node.target) if node.op == "call_module" else node.name
        sites.append(Site(node, name, shape, norm, problem=problem))
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
    """A call is on the trunk if no edge between tensors, or lists of them, passes it by."""
    def has_tensors(node: fx.Node) -> bool:
        return len(node.meta.get("storages", ())) > 0

    order = {node: i for i, node in enumerate(nodes)}
    last_use = {node: max((order[user] for user in node.users if has_tensors(user)),
                          default=order[node])
                for node in nodes if node.op != "get_attr" and has_tensors(node)}
    for site in sites:
        place = order[site.node]
        start = order[site.norm] if site.norm is not None else place
        site.trunk = all(last <= place for node, last in last_use.items() if order[node] < start)
