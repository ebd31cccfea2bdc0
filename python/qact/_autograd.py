"""Gradients of the operators.

Each formula serves three times. Registered with the operator, it holds wherever the operator goes:
compilers, exported programs. torch.func wants it as an autograd.Function with a setup_context. For
plain eager calls there is another one, which costs less: it hands the tensors to the kernel below
autograd, and keeps what the backward pass needs without a second look at the call.
"""

from typing import Any

import torch
from torch import Tensor

from ._fake import keeps_x, needs_x
from ._library import CPP_AUTOGRAD_MISSING, ops
from ._twice import refusing, registered_once

_below_autograd = torch._C._AutoDispatchBelowAutograd
_in_func = torch._C._are_functorch_transforms_active
_tracing_state = torch._C._get_tracing_state

# What an operator's own call calls, a frame less: in eager calls of a few microseconds.
_layer_forward_now = ops.layer_forward.default._op
_tracked_now = ops.layer_tracked.default._op
_layer_cpp: Any = None
if not CPP_AUTOGRAD_MISSING:
    _layer_cpp = torch.ops.qact_python_autograd.layer.default._op

_layer_forward = ops.layer_forward.default
_layer_backward = ops.layer_backward.default
_activation_forward = ops.activation_forward.default
_apply = ops.quantile_apply.default
_tracked = ops.layer_tracked.default
_apply_backward = ops.quantile_apply_backward.default


def _refuse_tangents(op: str, *tensors) -> None:
    """There is no differentiation in forward mode; a tangent must not be lost without a word."""
    for tensor in tensors:
        if tensor is not None and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            raise NotImplementedError(
                f"[{op}] expected tensors without tangents, got some: there is no differentiation "
                "in forward mode"
            )


def _wanted(gradients: Tensor, needed) -> tuple:
    rows = gradients.unbind()
    if all(needed):
        return rows
    return tuple(row if need else None for row, need in zip(rows, needed))


def _register(op, gradients, setup) -> Any:
    """Registers a formula with the operator, and returns it as torch.func wants it."""
    torch.library.register_autograd(op, gradients, setup_context=setup)
    return type(op.name().replace("::", "_"), (torch.autograd.Function,), {
        "generate_vmap_rule": True,
        "forward": staticmethod(lambda *args: op(*args)),
        "setup_context": staticmethod(lambda ctx, inputs, output: setup(ctx, inputs, output)),
        "backward": staticmethod(gradients),
    })


# --- what has no gradient: differentiating it is an error that names the operator

def _without_gradient(op) -> Any:
    def refuse(ctx, *_):
        raise NotImplementedError(f"[{op._opname}] expected no gradient to be asked of it, got "
                                  "one: it cannot be differentiated")

    return _register(op, refuse, lambda ctx, inputs, output: None)


_FuncLayerBackward = _without_gradient(_layer_backward)
_FuncApplyBackward = _without_gradient(_apply_backward)
_without_gradient(_tracked)


def _once(name: str, op, *args):
    """The operator of a backward pass, of what is called by that name."""
    with _below_autograd():
        gradients = op(*args)
    return refusing(name, *gradients) if torch.is_grad_enabled() else gradients


# --- the fused layer

class _Layer(torch.autograd.Function):
    """y; what has no gradient goes into the list `beside`, so that autograd need not look at it."""

    @staticmethod
    def forward(ctx, x, weight_in, bias_in, weight_out, bias_out, settings, track, beside):
        with _below_autograd():
            y, kept, stats, context = _layer_forward_now(
                x, weight_in, bias_in, weight_out, bias_out, *settings, True, track)
        if keeps_x(x, kept):
            ctx.save_for_backward(x, kept, stats, weight_in, bias_in, weight_out)
        else:
            ctx.save_for_backward(None, kept, stats, weight_in, None, weight_out)
        ctx.strides = y.stride()
        ctx.settings = settings
        beside += stats, context
        return y

    @staticmethod
    def backward(ctx, grad_y):
        # Under autograd's eyes: a checkpoint computes its tensors anew in here.
        x, *saved = ctx.saved_tensors
        # Without x, its gradient is laid out as grad_y; and codes on CUDA lie in the order of y.
        if (x is None or grad_y.is_cuda) and grad_y.stride() != ctx.strides:
            grad_y = _with_strides(grad_y, ctx.strides)
        grad_x, affine = _once("quantile_layer", _layer_backward, grad_y, x, *saved,
                               *ctx.settings)
        return (grad_x, *_wanted(affine, ctx.needs_input_grad[1:5]), None, None, None)


def _with_strides(x: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The same values with those strides."""
    once = x  # what an expanded tensor repeats
    for d, stride in enumerate(strides):
        if stride == 0:
            once = once.narrow(d, 0, 1)
    made = torch.empty_strided(once.shape, strides, dtype=x.dtype, device=x.device)
    return made.copy_(once).expand(x.shape)


# Function.apply itself looks for torch.func around it, which the callers below have done already.
_layer_apply = super(torch.autograd.Function, _Layer).apply


def _layer_setup(ctx, inputs, output):
    x, weight_in, bias_in, weight_out, _bias_out, *settings, keep, _track = inputs
    y, kept, stats, context = output
    if not keep:
        raise RuntimeError("[quantile_layer] expected keep=True where a gradient is wanted")
    anchor = x if _in_func() else None
    if needs_x(x, kept):
        ctx.save_for_backward(anchor, x, kept, stats, weight_in, bias_in, weight_out)
    else:
        ctx.save_for_backward(anchor, None, kept, stats, weight_in, None, weight_out)
    ctx.settings = settings
    ctx.strides = y.stride()
    ctx.mark_non_differentiable(kept, stats, context)


def _layer_gradients(ctx, grad_y, _kept, _stats, _context):
    call = _FuncLayerBackward.apply if _in_func() else _layer_backward
    if grad_y.is_cuda and grad_y.stride() != ctx.strides:
        grad_y = _with_strides(grad_y, ctx.strides)
    anchor, *saved = ctx.saved_tensors
    grad_x, affine = registered_once("quantile_layer", anchor, *call(grad_y, *saved, *ctx.settings))
    return (grad_x, *_wanted(affine, ctx.needs_input_grad[1:5]), *(None,) * 10)


_FuncLayer = _register(_layer_forward, _layer_gradients, _layer_setup)


# --- the plain activation

def _activation_gradient(grad: Tensor, density: Tensor) -> Tensor:
    # An infinite gradient where the density is 0 is no gradient.
    return torch.where(density == 0, torch.zeros((), dtype=grad.dtype, device=grad.device),
                       grad * density)


class _Activation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, settings):
        with _below_autograd():
            y, density = _activation_forward(x, *settings, True)
        ctx.save_for_backward(density)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        with torch.no_grad():
            grad_x = _activation_gradient(grad_y, ctx.saved_tensors[0])
        if torch.is_grad_enabled():
            grad_x, = refusing("quantile_activation", grad_x)
        return grad_x, None


def _activation_setup(ctx, inputs, output):
    if not inputs[-1]:
        raise RuntimeError("[quantile_activation] expected keep=True where a gradient is wanted")
    ctx.save_for_backward(inputs[0] if _in_func() else None, output[1])
    ctx.mark_non_differentiable(output[1])


def _activation_gradients(ctx, grad_y, _density):
    anchor, density = ctx.saved_tensors
    gradient = _activation_gradient(grad_y, density.detach())
    return (*registered_once("quantile_activation", anchor, gradient), *(None,) * 9)


_FuncActivation = _register(_activation_forward, _activation_gradients, _activation_setup)


# --- values among given quantiles

class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised):
        with _below_autograd():
            y = _apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised)
        ctx.save_for_backward(x, quantiles, scale, shift, out_scale)
        ctx.bandwidth = bandwidth
        return y

    @staticmethod
    def backward(ctx, grad_y):
        saved = ctx.saved_tensors
        grad_x, affine = _once("quantile_apply", _apply_backward, grad_y, *saved, ctx.bandwidth)
        return (grad_x, None, *_wanted(affine, ctx.needs_input_grad[2:6]), None, None)


def _apply_setup(ctx, inputs, output):
    x, quantiles, scale, shift, out_scale, _out_shift, bandwidth, _quantised = inputs
    ctx.save_for_backward(x, quantiles, scale, shift, out_scale)
    ctx.bandwidth = bandwidth


def _apply_gradients(ctx, grad_y):
    call = _FuncApplyBackward.apply if _in_func() else _apply_backward
    grad_x, affine = registered_once("quantile_apply", ctx.saved_tensors[0],
                                      *call(grad_y, *ctx.saved_tensors, ctx.bandwidth))
    return (grad_x, None, *_wanted(affine, ctx.needs_input_grad[2:6]), None, None)


_FuncApply = _register(_apply, _apply_gradients, _apply_setup)


# --- the calls

def plain() -> bool:
    """Whether this is an eager call, and no compiler, tracer or torch.func looks on, who would
    want operators instead of Python."""
    return not (torch.compiler.is_compiling() or _tracing_state() is not None or _in_func())


def _needs_gradient(*tensors) -> bool:
    if _tracing_state() is not None:
        return True  # later, perhaps; and jit.trace checks itself without any
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def layer(x, weight_in, bias_in, weight_out, bias_out, settings, track):
    """(y, stats, context); settings are the schema's numbers from eps to context_images."""
    if (_layer_cpp is not None and isinstance(x, Tensor)  # no proxy, which would be recorded
            and plain() and not torch.is_inference_mode_enabled()):  # there modes would see it
        return _layer_cpp(x, weight_in, bias_in, weight_out, bias_out, *settings, track)
    vectors = (weight_in, bias_in, weight_out, bias_out)
    if torch.autograd.forward_ad._current_level >= 0:
        _refuse_tangents("quantile_layer", x, *vectors)
    keep = _needs_gradient(x, *vectors)
    if plain():
        if keep:
            beside: list[Tensor] = []
            y = _layer_apply(x, *vectors, settings, track, beside)
            return y, *beside
        with _below_autograd():
            y, _, stats, context = _layer_forward_now(x, *vectors, *settings, False, track)
        return y, stats, context
    call = _layer_forward
    if _in_func() and torch.is_grad_enabled():
        call, keep = _FuncLayer.apply, True  # who wants a gradient may look from further out
    y, _, stats, context = call(x, *vectors, *settings, keep, track)
    return y, stats, context


def activation(x, settings):
    if torch.autograd.forward_ad._current_level >= 0:
        _refuse_tangents("quantile_activation", x)
    keep = _needs_gradient(x)
    if plain():
        if keep:
            return _Activation.apply(x, settings)
        with _below_autograd():
            return _activation_forward(x, *settings, False)[0]
    if _in_func() and torch.is_grad_enabled():
        return _FuncActivation.apply(x, *settings, True)[0]
    return _activation_forward(x, *settings, keep)[0]


def apply(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised):
    arguments = (x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised)
    if torch.autograd.forward_ad._current_level >= 0:
        _refuse_tangents("quantile_apply", x, scale, shift, out_scale, out_shift)
    if plain():
        if _needs_gradient(x, scale, shift, out_scale, out_shift):
            return _Apply.apply(*arguments)
        with _below_autograd():
            return _apply(*arguments)
    call = _FuncApply.apply if _in_func() and torch.is_grad_enabled() else _apply
    return call(*arguments)


def takes_tracked(x, vectors) -> bool:
    """Whether layer_tracked does: it has no gradient, and folds vectors of one type alone."""
    if (torch.autograd.forward_ad._current_level >= 0 or _in_func()
            or _tracing_state() is not None):  # jit.trace may want a gradient later
        return False
    asked = torch.is_grad_enabled()
    if asked and x.requires_grad:
        return False
    common = None
    for vector in vectors:
        if vector is None:
            continue
        dtype = vector.dtype
        if common is None:
            if dtype is not torch.float32 and dtype is not torch.float64:
                return False
            common = dtype
        if dtype is not common or asked and vector.requires_grad:
            return False
    return True


def tracked(x, quantiles, vectors, numbers):
    """numbers: the schema's, from eps on."""
    if torch.compiler.is_compiling():
        return _tracked(x, quantiles, *vectors, *numbers)
    with _below_autograd():
        return _tracked_now(x, quantiles, *vectors, *numbers)
