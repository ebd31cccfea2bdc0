"""A sound call of every operator, as arguments of its schema."""

import torch

ops = torch.ops.qact_python
NUMBERS = (1e-5, 100, 100.0, 0.5, 0.5, 0)  # eps, levels, bound, positive_share, bandwidth, auto


def vectors(count, channels=3, dtype=torch.float32):
    return [torch.rand(channels, dtype=dtype) + 0.5 for _ in range(count)]


def calls():
    x = torch.randn(4, 3, 5, 6)
    four = vectors(4)
    quantiles = torch.randn(3, 10, dtype=torch.float64).sort(1).values
    context = ops.context_build(x, None, None)
    _, kept, stats, _ = ops.layer_forward(x, *four, *NUMBERS, 0, 0, True, True)
    ranks = (*NUMBERS[1:], True, 0, 0)
    return {
        "layer_forward": (x, *four, *NUMBERS, 0, 0, True, True),
        "layer_backward": (x, x, kept, stats, *four[:3], *NUMBERS, 0, 0),
        "layer_track": (*vectors(4), context.clone(), torch.tensor(3), stats, context, 0.1, 120, 4,
                        4),
        "layer_tracked": (x, quantiles, *four, *vectors(4), 1e-5, True, 0, 100.0, 0.5, 0),
        "activation_forward": (x, *ranks, True),
        "quantiles": (x, 7, 100.0, 0.5),
        "quantile_apply": (x, quantiles, *four, 0.5, True),
        "quantile_apply_backward": (x, x, quantiles, *four[:3], 0.5),
        "context_build": (x, four[0], four[1]),
        "context_blend": (context, context, torch.tensor(3), None, 0.1, 4, 120),
        "context_quantiles": (context, 10, 100.0, 0.5),
        "standard_normal": (torch.empty(256, dtype=torch.int64),),
    }


def op(name):
    return getattr(ops, name).default


def tensor_places():
    """(operator, argument) of each tensor that has another one beside it."""
    found = []
    for name, arguments in calls().items():
        tensors = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        found += [(name, place) for place in tensors if len(tensors) > 1]
    return found
