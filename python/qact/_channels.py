"""Which dimension of a tensor in a traced model has the channels.

It is followed from modules and functions that have a fixed place for them, through those that leave
it or move it. What is not listed here makes it unknown.
"""

import re
from typing import Optional

from torch import fx, nn

from ._freeze import FrozenQuantileActivation
from ._trace import shape_of
from .modules import QuantileActivation

# By the file of torch.nn.modules, and by the name of a function or method.
_FIRST_FILES = ("conv", "batchnorm", "instancenorm", "pixelshuffle", "upsampling")
_FIRST_CLASSES = (nn.GroupNorm, nn.LocalResponseNorm, QuantileActivation, FrozenQuantileActivation)
_FIRST_NAMES = {"conv", "conv_transpose", "batch_norm", "instance_norm", "group_norm",
                "local_response_norm", "interpolate", "pixel_shuffle", "pixel_unshuffle"}
_POOL_NAMES = {"max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool", "lp_pool"}
_LAST_CLASSES = (nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Embedding)
_LAST_NAMES = {"linear", "layer_norm", "rms_norm", "embedding"}
_KEEPING_FILES = ("activation", "dropout", "padding")
_KEEPING_USERS = {"DropPath", "StochasticDepth"}  # of timm and torchvision
_KEEPING_NAMES = {
    "add", "iadd", "sub", "isub", "mul", "imul", "div", "truediv", "itruediv", "true_divide", "neg",
    "abs", "exp", "log", "sqrt", "rsqrt", "square", "pow", "sigmoid", "tanh", "softplus", "softsign",
    "logsigmoid", "softmax", "log_softmax", "clamp", "clip", "clamp_min", "clamp_max", "maximum",
    "minimum", "where", "lerp", "masked_fill", "nan_to_num", "normalize", "pad", "flip", "roll",
    "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "silu", "gelu", "mish", "hardswish",
    "hardsigmoid", "hardtanh", "prelu", "rrelu", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "alpha_dropout", "feature_alpha_dropout", "glu", "expand", "expand_as", "float", "half", "double",
    "bfloat16", "to", "type", "type_as", "contiguous", "clone", "detach", "cat", "concat",
    "concatenate", "chunk", "split", "tensor_split", "narrow", "mean", "sum", "amax", "amin", "var",
    "std"}
_RESHAPING_NAMES = {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"}
_RESHAPING_CLASSES = (nn.Flatten, nn.Unflatten)


def _file(module: nn.Module) -> str:
    """The file of torch.nn.modules that the module's class, or its nearest base, is from."""
    for cls in type(module).__mro__[:-1]:
        if cls.__module__.startswith("torch.nn.modules."):
            return cls.__module__.rsplit(".", 1)[1]
    return ""


def _name(node: fx.Node) -> str:
    """Of one of torch's or Python's functions, or of a method."""
    if node.op == "call_method":
        name = str(node.target)
    else:
        module = getattr(node.target, "__module__", None) or "torch"
        name = getattr(node.target, "__name__", "") if module.split(".")[0] in (
            "torch", "_operator", "builtins") else ""
    return name.rstrip("_") if not name.startswith("_") else ""


def _fits(name: str, shape: tuple[int, ...]) -> bool:
    """What has a number of dimensions in its name may have been called without a batch."""
    found = re.search(r"([123])d$", name)
    return found is None or len(shape) == int(found[1]) + 2


class Channels:
    """Of the nodes of a graph whose shapes are known."""

    def __init__(self, modules: dict[str, nn.Module]) -> None:
        self._modules = modules
        self._found: dict[fx.Node, Optional[int]] = {}

    def come_first(self, node: fx.Node) -> bool:
        """Whether they are known to be in dimension 1, by where it comes from or else by who reads
        it."""
        dimension = self.dimension(node)
        return dimension == 1 or dimension is None and self._are_read_first(node, set())

    def dimension(self, node: fx.Node) -> Optional[int]:
        if node not in self._found:
            # Sources stand before their users, so that this never goes deep.
            for source in node.graph.nodes:
                if source not in self._found:
                    self._found[source] = self._of(source)
                if source is node:
                    break
        return self._found[node]

    def _kind(self, node: fx.Node) -> str:
        """first, pool, last, keeps, reshapes, or a name."""
        if node.op == "call_module":
            return self._kind_of(self._modules[str(node.target)])
        if node.op not in ("call_function", "call_method"):
            return ""
        name = _name(node)
        plain = name[:-2] if name[-2:] in ("1d", "2d", "3d") else name
        for kind, names in (("first", _FIRST_NAMES), ("pool", _POOL_NAMES), ("last", _LAST_NAMES),
                            ("reshapes", _RESHAPING_NAMES)):
            if plain in names:
                return kind
        return "keeps" if name in _KEEPING_NAMES else name

    @staticmethod
    def _kind_of(module: nn.Module) -> str:
        file = _file(module)
        if isinstance(module, _FIRST_CLASSES) or file in _FIRST_FILES:
            return "first"
        if isinstance(module, _LAST_CLASSES):
            several = len(getattr(module, "normalized_shape", ())) > 1  # the last dimensions
            return "keeps" if several else "last"
        if isinstance(module, _RESHAPING_CLASSES):
            return "reshapes"
        if file == "pooling":
            return "pool"
        keeps = (file in _KEEPING_FILES and not isinstance(module, nn.MultiheadAttention)
                 or isinstance(module, nn.Identity) or type(module).__name__ in _KEEPING_USERS)
        return "keeps" if keeps else ""

    def _named(self, node: fx.Node) -> str:
        module = self._modules.get(str(node.target)) if node.op == "call_module" else None
        return _name(node) if module is None else type(module).__name__.lower()

    def _of(self, node: fx.Node) -> Optional[int]:
        kind, shape = self._kind(node), shape_of(node)
        if shape is not None and len(shape) == 2:
            return 1
        if kind == "first":
            return 1 if shape is not None and _fits(self._named(node), shape) else None
        if kind == "last":
            return None if shape is None else len(shape) - 1
        if kind == "getitem":
            return self._of_item(node, shape)
        if kind == "keeps" or kind == "pool":
            kept = self._kept(node, shape)
            proof = kind == "pool" and shape is not None and _fits(self._named(node), shape)
            return 1 if kept is None and proof else kept
        if kind == "reshapes":
            source = node.all_input_nodes[0]
            before = shape_of(source)
            leading = before is not None and shape is not None and before[:2] == shape[:2]
            return 1 if leading and self._found[source] == 1 else None
        return self._moved(node, kind, shape)

    def _kept(self, node: fx.Node, shape: Optional[tuple[int, ...]]) -> Optional[int]:
        """What the inputs of as many dimensions agree on."""
        found = set()
        for source in node.all_input_nodes:
            of = shape_of(source)
            if shape is None or of is None or len(of) == len(shape):
                found.add(self._found[source])
        found.discard(None)
        return found.pop() if len(found) == 1 else None

    def _of_item(self, node: fx.Node, shape: Optional[tuple[int, ...]]) -> Optional[int]:
        """One of several tensors, or a slice."""
        source, index = node.args[0], node.args[1]
        assert isinstance(source, fx.Node)
        if shape_of(source) is None:
            return self._found[source]
        parts = index if isinstance(index, tuple) else (index,)
        slices = all(isinstance(part, slice) or part is Ellipsis for part in parts)
        return self._found[source] if slices else None

    def _moved(self, node: fx.Node, kind: str, shape: Optional[tuple[int, ...]]) -> Optional[int]:
        if kind not in ("permute", "transpose", "swapaxes") or shape is None:
            return None
        source = node.all_input_nodes[0]
        before = self._found[source]
        dims = node.args[1:]
        if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
            dims = tuple(dims[0])
        if before is None or len(dims) != (len(shape) if kind == "permute" else 2):
            return None
        order = [d % len(shape) for d in dims if isinstance(d, int)]
        if kind == "permute":
            return order.index(before)
        return {order[0]: order[1], order[1]: order[0]}.get(before, before)

    def _are_read_first(self, node: fx.Node, seen: set[fx.Node]) -> bool:
        """Whether it reaches, as it is, a module that has them there."""
        if node in seen:
            return False
        seen.add(node)
        dims = len(shape_of(node) or ())
        for user in node.users:
            kind, shape = self._kind(user), shape_of(user)
            if shape is None or len(shape) != dims:
                continue
            if kind == "first" and user.all_input_nodes[0] is node:
                if _fits(self._named(user), shape):
                    return True
            elif kind in ("keeps", "pool") and self._are_read_first(user, seen):
                return True
        return False
