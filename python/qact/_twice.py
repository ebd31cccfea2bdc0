"""Differentiating twice is an error, also where nothing that a gradient is made of depends on x."""

from typing import Any

import torch
from torch import Tensor

_in_func = torch._C._are_functorch_transforms_active
_TWICE = ("[{}] expected to be differentiated once, got a second derivative asked for: the gradient "
          "cannot be differentiated")


def refusing(op: str, *gradients: Tensor) -> tuple[Tensor, ...]:
    """The same gradients, in a graph whose backward pass is that error."""
    error = torch._C._functions.DelayedError(  # type: ignore[attr-defined]
        _TWICE.format(op).encode(), len(gradients))
    marked = error(*(gradient.detach().requires_grad_() for gradient in gradients))
    return (marked,) if isinstance(marked, Tensor) else tuple(marked)


class _FuncOnce(torch.autograd.Function):
    """The gradient, whose own derivative, by it or by the anchor, is that error."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient, anchor, op):
        return gradient.view_as(gradient)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.op = inputs[2]

    @staticmethod
    def backward(ctx, *_):
        raise NotImplementedError(_TWICE.format(ctx.op))


def registered_once(op: str, anchor: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
    """The same for a formula that is registered with an operator. anchor: x under torch.func, whose
    derivatives know of each other by what they are made of; elsewhere x need not be kept for it."""
    if _in_func():
        if anchor is None:
            return gradients
        return tuple(_FuncOnce.apply(gradient, anchor, op) for gradient in gradients)
    if torch.is_grad_enabled() and not (torch.compiler.is_compiling() or torch.jit.is_tracing()):
        return refusing(op, *gradients)
    return gradients
