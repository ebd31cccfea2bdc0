"""torch.library.opcheck on every operator: schema, autograd registration, meta, dynamic shapes."""

import pytest
import torch
from torch.library import opcheck

qact = torch.ops.qact


def needs_grad(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def layer_saved(x):
    """What the fused layer's forward pass hands to its backward pass."""
    vectors = (None, None, None, None)
    out = qact._quantile_layer_forward(
        x, *vectors, 1e-5, 100, 100.0, 0.5, 0.5, "auto", False, 0, 0, True)
    return out[1:4]


def world_saved(x, x_images):
    """What the backward pass takes of the forward pass, from code to image_table."""
    vectors = (None, None, None, None)
    out = qact._quantile_layer_world_forward(
        x, x_images, *vectors, 1e-5, 100, 100.0, 0.5, 0.5, "auto", False, True, "")
    return out[2], out[3], out[8], out[4], out[5]


def cases():
    x4, x2 = torch.randn(4, 3, 5, 6), torch.randn(40, 3)
    last = torch.randn(4, 3, 5, 6).to(memory_format=torch.channels_last)
    crossed = torch.randn(4, 3, 6, 5).transpose(2, 3)
    vectors = [torch.rand(3) + 0.5 for _ in range(4)]
    settings = (1e-5, 100, 100.0, 0.5, 0.5, "auto")
    quantiles = torch.randn(3, 10, dtype=torch.float64).sort(1).values
    context = qact.context_build(x4)
    grad_vectors = [v.clone().requires_grad_() for v in vectors]
    saved = layer_saved(x4)
    forward = (100, 100.0, 0.5, 0.5, "auto", True, 0, 0)
    return [
        ("quantile_activation", (x2,), {}),
        ("quantile_activation", (needs_grad(4, 3, 5, 6),), {}),
        ("quantile_activation", (needs_grad(40, 3, dtype=torch.float64),), {"algorithm": "exact"}),
        ("quantile_activation", (last.requires_grad_(),), {"levels": 20}),
        ("quantile_activation", (crossed.requires_grad_(),), {"quantised": False}),
        ("quantile_activation", (needs_grad(40, 3, dtype=torch.bfloat16),), {}),
        ("_quantile_activation_forward", (x4, *forward, True), {}),
        ("_quantile_activation_forward", (x4, *forward, False), {}),
        ("_quantile_activation_backward", (x4, x4.abs()), {}),
        ("quantiles", (x4,), {"levels": 7}),
        ("quantile_layer", (x4,), {}),
        ("quantile_layer", (needs_grad(4, 3, 5, 6), *grad_vectors), {"track": True}),
        ("quantile_layer", (last, *grad_vectors), {}),
        ("quantile_layer", (needs_grad(4, 3, 5, 6), *grad_vectors),
         {"track": True, "image_channels": 1}),
        ("quantile_layer", (last, *grad_vectors), {"image_channels": 1, "context_images": 3}),
        ("quantile_layer", (crossed, None, None, *grad_vectors[2:]), {"levels": 255}),
        ("_quantile_layer_forward",
         (x4, *vectors, 1e-5, 100, 100.0, 0.5, 0.5, "auto", True, 1, 0, True), {}),
        ("_quantile_layer_backward",
         (x4, x4, *saved, *vectors[:3], 1e-5, 100, 100.0, 0.5, 0.5, "auto", 0, 0), {}),
        ("quantile_layer_world", (needs_grad(4, 3, 5, 6), *grad_vectors), {"track": True}),
        ("quantile_layer_world", (last, None, None, *grad_vectors[2:]), {"levels": 255}),
        ("quantile_layer_world", (needs_grad(4, 3, 5, 6), *grad_vectors), {"image_channels": 1}),
        ("_quantile_layer_world_forward",
         (x4, None, *vectors, 1e-5, 100, 100.0, 0.5, 0.5, "auto", True, True, ""), {}),
        ("_quantile_layer_world_forward",
         (x4[:, 1:], x4[:, :1], *vectors, 1e-5, 100, 100.0, 0.5, 0.5, "auto", True, True, ""), {}),
        ("_quantile_layer_world_backward",
         (x4, None, None, *world_saved(x4, None), *vectors[:3], *settings, ""), {}),
        ("_quantile_layer_world_backward",
         (x4[:, 1:], x4[:, :1], x4[:, :1], *world_saved(x4[:, 1:], x4[:, :1]), *vectors[:3],
          *settings, ""), {}),
        ("context_build", (x4,), {}),
        ("context_build", (x4, vectors[0], vectors[1]), {}),
        ("context_blend", (context, 10.0, context, 30.0), {}),
        ("context_quantiles", (context,), {"levels": 10}),
        ("_layer_track",
         (*(v.clone() for v in vectors), context.clone(), torch.tensor(3), saved[2],
          context, 0.1, 120.0, 1024.0),
         {}),
        ("quantile_apply", (x4, quantiles), {}),
        ("quantile_apply", (needs_grad(4, 3, 5, 6), quantiles, *grad_vectors), {}),
        ("_quantile_apply_backward", (x4, x4, quantiles, *vectors[:3], 0.5), {}),
    ]


@pytest.mark.parametrize("index", range(len(cases())))
def test_opcheck(index):
    name, args, kwargs = cases()[index]
    opcheck(getattr(qact, name).default, args, kwargs)


def test_every_operator_is_checked():
    registered = {schema.name.removeprefix("qact::")
                  for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("qact::")}
    assert registered == {name for name, _, _ in cases()}
