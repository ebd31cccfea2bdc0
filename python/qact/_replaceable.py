"""What a module has that would be lost where something else takes its place."""

from torch import nn

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def check_hooks(where: str, module: nn.Module, name: str) -> None:
    if any(getattr(module, hooks, None) for hooks in _HOOKS):
        raise ValueError(f"[{where}] expected no hooks on modules that something else takes the place "
                         f"of, got some on {type(module).__name__} '{name}': register them afterwards")


def has_forward_of_this_package(layer: nn.Module) -> bool:
    """And not one of a subclass that somebody else wrote."""
    package = __name__.split(".")[0]
    return all(getattr(type(layer), name).__module__.split(".")[0] == package
               for name in ("forward", "_run"))
