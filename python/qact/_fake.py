"""Fake kernels: the shapes of what the operators return, for compilers and the meta device."""

from typing import Optional, Union

import torch
from torch import Tensor

from ._library import CONTEXT_BINS, KEPT_TABLE_BYTES, LAYER_STATS

_register = torch.library.register_fake

#: Devices whose kernels keep codes for the backward pass.
CODE_DEVICES = ("cpu", "meta", "cuda")


def _describe(x: Tensor) -> str:
    shape = ",".join(str(size) for size in x.shape)
    return f"{str(x.dtype).removeprefix('torch.')} of shape ({shape})"


def check_devices(op: str, device: torch.device, of: str, **tensors: Optional[Tensor]) -> None:
    """All on one device. A meta tensor among others would make the whole call a meta call."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.device != device:
            raise RuntimeError(
                f"[{op}] expected {name} on {device}, as {of}, got {tensor.device}"
            )


def _check_x(op: str, x: Tensor, **vectors: Optional[Tensor]) -> None:
    if not x.is_floating_point() or x.dim() < 2:
        raise RuntimeError(
            f"[{op}] expected a floating tensor of 2 or more dimensions, got {_describe(x)}"
        )
    check_devices(op, x.device, "x", **vectors)
    for name, vector in vectors.items():
        if vector is not None and (vector.dim() != 1 or vector.shape[0] != x.shape[1]):
            raise RuntimeError(
                f"[{op}] expected {name} to be a floating tensor of shape ({x.shape[1]}), one "
                f"number per channel, got {_describe(vector)}"
            )


def _check_context(op: str, name: str, context: Tensor) -> None:
    if context.dtype != torch.int64 or context.dim() != 2 or context.shape[1] != CONTEXT_BINS:
        raise RuntimeError(
            f"[{op}] expected {name} to be an int64 tensor of shape (channels,{CONTEXT_BINS}), "
            f"got {_describe(context)}"
        )


def _table_type(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def kept_bytes(x: Tensor, image_channels: int, context_images: int) -> int:
    """The length of what layer_forward keeps of x: a table for each context and a byte for each
    value, where that is no more than the values themselves (core/contexts.h)."""
    batch, channels = x.shape[0], x.shape[1]
    n = x.numel() // channels
    groups = context_images > 0 and batch > context_images
    if x.device.type not in CODE_DEVICES:
        return 0  # all is computed again
    # Channels, values per context, contexts per channel.
    parts = [(image_channels, n // batch, batch)]
    if groups:
        count = (batch + context_images - 1) // context_images
        parts.append((channels - image_channels, context_images * (n // batch), count))
    else:
        parts.append((channels - image_channels, n, 1))
    parts = [part for part in parts if part[0] > 0]
    long_enough = [values * x.element_size() >= KEPT_TABLE_BYTES for _, values, _ in parts]
    kept = sum(of * (n + KEPT_TABLE_BYTES * count)
               for (of, _, count), keeps in zip(parts, long_enough) if keeps)
    # Beside x, which short contexts need, no more than a byte a value.
    return 0 if not all(long_enough) and kept > x.numel() else kept


def needs_x(x: Tensor, kept: Tensor) -> bool:
    """Whether layer_backward needs x beside what was kept: tables and codes of all contexts are
    more than a byte a value, and those of some are not. Other devices keep none."""
    return _any_batch(x) or keeps_x(x, kept)


def keeps_x(x: Tensor, kept: Tensor) -> bool:
    """The same in an eager call, where nothing is exported."""
    return kept.numel() <= x.numel()


def _any_batch(x: Tensor) -> bool:
    """Whether one program is being exported for batches of which some keep codes and some do not."""
    return torch.compiler.is_exporting() and isinstance(x.shape[0], torch.SymInt)


@_register("qact_python::layer_forward")
def _(x, weight_in, bias_in, weight_out, bias_out, eps, levels, bound, positive_share, bandwidth,
      algorithm, image_channels, context_images, keep, track):
    _check_x("quantile_layer", x, weight_in=weight_in, bias_in=bias_in, weight_out=weight_out,
             bias_out=bias_out)
    if all(isinstance(size, int) for size in x.shape) and x.numel() <= x.shape[1]:
        raise RuntimeError("[quantile_layer] expected more than one value per channel to take "
                           f"statistics from, got {_describe(x)}")
    rows = x.shape[1] - image_channels
    kept: Union[int, torch.SymInt] = 0
    if keep and _any_batch(x):
        kept = torch.library.get_ctx().new_dynamic_size()
    elif keep:
        kept = kept_bytes(x, image_channels, context_images)
    return (torch.empty_like(x), x.new_empty(kept, dtype=torch.uint8),
            x.new_empty(rows, LAYER_STATS, dtype=torch.float64),
            x.new_empty(rows if track else 0, CONTEXT_BINS, dtype=torch.int64))


@_register("qact_python::layer_backward")
def _(grad_y, x, kept, stats, weight_in, bias_in, weight_out, eps, levels, bound, positive_share,
      bandwidth, algorithm, image_channels, context_images):
    op = "quantile_layer_backward"
    _check_x(op, grad_y, weight_in=weight_in, bias_in=bias_in, weight_out=weight_out)
    check_devices(op, grad_y.device, "grad_y", x=x, kept=kept, stats=stats)
    return (torch.empty_like(grad_y if x is None else x),
            grad_y.new_empty(4, grad_y.shape[1], dtype=_table_type(grad_y)))


@_register("qact_python::layer_track")
def _(mean_in, var_in, mean_out, var_out, context, batches, stats, batch, momentum, n,
      context_images, images):
    check_devices("layer_track", context.device, "context", mean_in=mean_in, var_in=var_in,
                  mean_out=mean_out, var_out=var_out, batches=batches, stats=stats, batch=batch)


@_register("qact_python::layer_tracked")
def _(x, quantiles, mean_in, var_in, weight_in, bias_in, mean_out, var_out, weight_out, bias_out,
      eps, quantised, image_channels, bound, positive_share, algorithm):
    _check_x("layer_tracked", x, mean_in=mean_in, var_in=var_in, weight_in=weight_in,
             bias_in=bias_in, mean_out=mean_out, var_out=var_out, weight_out=weight_out,
             bias_out=bias_out)
    check_devices("layer_tracked", x.device, "x", quantiles=quantiles)
    return torch.empty_like(x)


@_register("qact_python::activation_forward")
def _(x, levels, bound, positive_share, bandwidth, algorithm, quantised, density_samples, seed,
      keep):
    _check_x("quantile_activation", x)
    return torch.empty_like(x), torch.empty_like(x) if keep else x.new_empty(0)


@_register("qact_python::quantiles")
def _(x, levels, bound, positive_share):
    _check_x("quantiles", x)
    return x.new_empty(x.shape[1], levels, dtype=_table_type(x))


@_register("qact_python::quantile_apply")
def _(x, quantiles, scale, shift, out_scale, out_shift, bandwidth, quantised):
    _check_x("quantile_apply", x, scale=scale, shift=shift, out_scale=out_scale,
             out_shift=out_shift)
    check_devices("quantile_apply", x.device, "x", quantiles=quantiles)
    return torch.empty_like(x)


@_register("qact_python::quantile_apply_backward")
def _(grad_y, x, quantiles, scale, shift, out_scale, bandwidth):
    op = "quantile_apply_backward"
    _check_x(op, x, scale=scale, shift=shift, out_scale=out_scale)
    check_devices(op, x.device, "x", grad_y=grad_y, quantiles=quantiles)
    return torch.empty_like(x), x.new_empty(4, x.shape[1], dtype=_table_type(x))


@_register("qact_python::context_build")
def _(x, scale, shift):
    _check_x("context_build", x, scale=scale, shift=shift)
    return x.new_empty(x.shape[1], CONTEXT_BINS, dtype=torch.int64)


@_register("qact_python::context_blend")
def _(a, b, batches, prior, momentum, images, n):
    _check_context("context_blend", "a", a)
    _check_context("context_blend", "b", b)
    check_devices("context_blend", a.device, "a", b=b, batches=batches)
    return torch.empty_like(a, memory_format=torch.contiguous_format)


@_register("qact_python::context_quantiles")
def _(context, levels, bound, positive_share):
    _check_context("context_quantiles", "context", context)
    return context.new_empty(context.shape[0], levels, dtype=torch.float64)


@_register("qact_python::standard_normal")
def _(row):
    return None
