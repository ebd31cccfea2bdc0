"""Which calls of a graph are activations, and which modules are norms that can be absorbed."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.nn.utils import parametrize

BATCH_NORM = nn.modules.batchnorm._BatchNorm

MODULES = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.CELU, nn.SELU, nn.SiLU, nn.GELU,
           nn.Mish, nn.Hardswish)
FUNCTIONS = (F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.silu, F.gelu, F.mish,
             F.hardswish, torch.relu, torch.relu_, torch.selu)
METHODS = ("relu", "relu_")


def is_activation(module: Any) -> bool:
    return isinstance(module, MODULES)


def _known_norm(module: Any) -> bool:
    """Whether its forward is torch's, or timm's with a dropout and an activation behind it."""
    if (not isinstance(module, BATCH_NORM) or "forward" in vars(module)
            or parametrize.is_parametrized(module)):
        return False
    of = type(module).forward.__module__
    return (of == nn.modules.batchnorm.__name__ or of.startswith("timm.")) and isinstance(
        getattr(module, "drop", nn.Identity()), nn.Identity)


def norm_with_activation(module: Any) -> bool:
    """A BatchNorm that also activates, as timm's BatchNormAct2d."""
    return _known_norm(module) and is_activation(getattr(module, "act", None))


def plain_norm(module: Any) -> bool:
    return _known_norm(module) and isinstance(getattr(module, "act", nn.Identity()), nn.Identity)


def hides_activation(module: Any) -> bool:
    """Of a module that is not looked into."""
    inside = any(is_activation(m) for m in module.modules() if m is not module)
    activation = getattr(module, "activation", None)
    return not norm_with_activation(module) and (
        inside or activation in FUNCTIONS or is_activation(activation))


def activates(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        module = modules[str(node.target)]
        return is_activation(module) or norm_with_activation(module)
    if node.op == "call_function":
        return node.target in FUNCTIONS
    return node.op == "call_method" and node.target in METHODS


def in_place(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return bool(getattr(modules[str(node.target)], "inplace", False))
    if node.op == "call_function":
        positional = any(argument is True for argument in node.args)
        return node.target is torch.relu_ or positional or bool(node.kwargs.get("inplace", False))
    return node.target == "relu_"
