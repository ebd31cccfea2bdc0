"""Rules for torch.vmap: each sample is a call of its own.

Contexts belong to a call, so samples cannot be put into one batch; folding them into the channels
would save launches, but not what a channel costs.
"""

import torch

from ._library import ops


def _of_no_samples(op, in_dims, args):
    """Shapes are those that a sample on the meta device has."""
    device = next(arg.device for arg in args if isinstance(arg, torch.Tensor))

    def sample(arg, dim):
        if not isinstance(arg, torch.Tensor):
            return arg
        shape = [size for d, size in enumerate(arg.shape) if dim is None or d != dim % arg.dim()]
        return torch.empty(shape, dtype=arg.dtype, device="meta")

    found = op(*(sample(arg, dim) for arg, dim in zip(args, in_dims)))
    single = isinstance(found, torch.Tensor)
    stacked = tuple(torch.empty((0, *of.shape), dtype=of.dtype, device=device)
                    for of in ((found,) if single else found))
    return (stacked[0], 0) if single else (stacked, (0,) * len(stacked))


def _register_loop(name: str) -> None:
    op = getattr(ops, name).default

    def rule(info, in_dims, *args):
        results = [
            op(*(arg if dim is None else arg.select(dim, i) for arg, dim in zip(args, in_dims)))
            for i in range(info.batch_size)
        ]
        if not results:
            return _of_no_samples(op, in_dims, args)
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        stacked = tuple(torch.stack(column) for column in zip(*results))
        return stacked, (0,) * len(stacked)

    torch.library.register_vmap(f"qact_python::{name}", rule)


for _name in ("layer_forward", "layer_backward", "layer_tracked", "activation_forward",
              "quantiles", "quantile_apply", "quantile_apply_backward", "context_build",
              "context_blend", "context_quantiles"):
    _register_loop(_name)
