"""The operators as Python sees them: values, gradients, types, messages."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

qact = torch.ops.qact


def oracle(z, levels=100, c=100.0, p=0.5, h=0.5):
    """Level and density of every member of one channel, from the definitions."""
    z = z.double()
    context = torch.cat([z, torch.tensor([-c, c], dtype=torch.float64)])
    positive = context >= 0
    weight = torch.where(positive, p / positive.sum(), (1 - p) / (~positive).sum())
    cumulative = (weight * (context <= z[:, None])).sum(1)
    level = ((levels + 1) * cumulative + 1e-9).floor().clamp(max=levels)
    kernel = torch.exp(-0.5 * ((z[:, None] - context) / h) ** 2) / (h * (2 * torch.pi) ** 0.5)
    return level, (weight * kernel).sum(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(7, 2), (20, 2, 5), (3, 2, 4, 5), (2, 2, 3, 4, 5)])
def test_activation_is_the_oracles(shape, dtype):
    x = (2 * torch.randn(shape)).to(dtype).requires_grad_()
    grad = torch.randn(shape).to(dtype)
    y = qact.quantile_activation(x)
    y.backward(grad)
    assert y.dtype == dtype and x.grad.dtype == dtype
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-5}.get(dtype, 2e-2)
    for c in range(2):
        level, density = oracle(x.detach()[:, c].flatten())
        assert torch.equal((y.detach()[:, c].flatten().double() * 100).round(), level)
        expected = density * grad[:, c].flatten().double()
        error = (x.grad[:, c].flatten().double() - expected).norm() / expected.norm()
        assert error < tolerance


def test_activation_is_invariant_under_increasing_maps():
    x = torch.randn(200, 3, dtype=torch.float64)
    y = qact.quantile_activation(x, algorithm="exact")
    assert torch.equal(qact.quantile_activation(x ** 3, algorithm="exact"), y)


def test_layer_is_batch_norm_around_the_activation():
    x = torch.randn(16, 4, 8, 8, requires_grad=True)
    vectors = [torch.rand(4).add(0.5).requires_grad_() for _ in range(4)]
    weight_in, bias_in, weight_out, bias_out = vectors
    grad = torch.randn(16, 4, 8, 8)

    def norm(v, weight, bias):
        return torch.nn.functional.batch_norm(v, None, None, weight, bias, training=True)

    composed = norm(qact.quantile_activation(norm(x, weight_in, bias_in)), weight_out, bias_out)
    fused, stats, context = qact.quantile_layer(x, *vectors, track=True)
    # Two roundings of z may part a few values from their level: 1/100 of 1/0.29 deviations each.
    assert (fused - composed).norm() < 0.002 * composed.norm()
    expected = torch.autograd.grad(composed, [x, *vectors], grad)
    found = torch.autograd.grad(fused, [x, *vectors], grad)
    assert (found[0] - expected[0]).norm() < 0.01 * expected[0].norm()
    # Sums of 1,024 terms: off by 0.3% of their sizes by code, such values, and plain sums.
    for a, b, allowed in zip(found[1:], expected[1:], (0.6, 0.6, 0.2, 1e-4)):
        assert (a - b).abs().max() < allowed
    assert not stats.requires_grad and not context.requires_grad
    assert torch.allclose(stats[:, 0], x.detach().double().mean((0, 2, 3)), atol=1e-6)
    assert torch.all(context.sum(1) == 1024 << 16)


def test_only_what_needs_a_gradient_gets_one():
    x, weight = torch.randn(50, 2), torch.ones(2, requires_grad=True)
    y, _, _ = qact.quantile_layer(x, None, None, weight)
    y.square().sum().backward()
    assert weight.grad.shape == (2,)
    with torch.no_grad():
        assert not qact.quantile_activation(x.requires_grad_()).requires_grad
    with torch.inference_mode():
        qact.quantile_layer(x.detach())


@pytest.mark.parametrize("name", ["quantile_activation", "quantile_layer"])
def test_second_derivatives_are_refused(name):
    x = torch.randn(20, 3, requires_grad=True)
    y = getattr(qact, name)(x)
    y = y[0] if isinstance(y, tuple) else y
    (grad,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=rf"\[{name}\] expected to be differentiated once"):
        grad.sum().backward()


def squares(x, vectors):
    return qact.quantile_layer(x, *vectors)[0].square().mul(torch.arange(1.0, 21)[:, None]).sum()


def test_layer_has_a_place_in_the_graph():
    x, vectors = torch.randn(20, 3), [torch.rand(3).add(0.5) for _ in range(4)]
    leaves = [t.clone().requires_grad_() for t in (x, *vectors)]
    squares(leaves[0], leaves[1:]).backward()
    expected = [t.grad for t in leaves]
    assert torch.equal(torch.func.grad(squares)(x, vectors), expected[0])
    for leaf in leaves:
        leaf.grad = None
    checkpoint(squares, leaves[0], leaves[1:], use_reentrant=False).backward(retain_graph=True)
    assert all(torch.equal(leaf.grad, grad) for leaf, grad in zip(leaves, expected))
    loss = squares(leaves[0], leaves[1:])
    (only,) = torch.autograd.grad(loss, leaves[3], retain_graph=True)
    assert torch.equal(only, expected[3])
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_layer_refuses_tensors_changed_since():
    x, weight = torch.randn(20, 3), torch.ones(3, requires_grad=True)
    y, stats, _ = qact.quantile_layer(x, weight)
    stats.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("name,arguments", [
    ("quantile_layer", ()), ("quantile_activation", ()),
    ("quantile_apply", (torch.linspace(-2, 2, 9).repeat(3, 1),))])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tangents_are_refused(name, arguments, requires_grad):
    x = torch.randn(20, 3, requires_grad=requires_grad)
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=rf"\[{name}\] .*tangent"):
        getattr(qact, name)(forward_ad.make_dual(x, torch.ones_like(x)), *arguments)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_gradients_of_vectors_have_their_types(dtype):
    x, quantiles = torch.randn(20, 3), torch.randn(3, 10, dtype=torch.float64).sort(1).values
    vectors = [torch.rand(3).to(dtype).requires_grad_() for _ in range(4)]
    for y in (qact.quantile_layer(x, *vectors)[0], qact.quantile_apply(x, quantiles, *vectors)):
        assert all(g.dtype == dtype for g in torch.autograd.grad(y.square().sum(), vectors))


def test_a_kept_context_ranks_a_single_sample():
    context = qact.context_build(torch.randn(4000, 3))
    quantiles = qact.context_quantiles(context)
    y = qact.quantile_apply(torch.tensor([[-9.0, 0.0, 9.0]]), quantiles)
    assert y[0, 0] == 0 and abs(y[0, 1] - 0.5) <= 0.02 and y[0, 2] == 1


@pytest.mark.parametrize("call, message", [
    (lambda: qact.quantile_activation(torch.zeros(3, dtype=torch.int64)),
     r"\[quantile_activation\] expected a floating tensor of 2 or more dimensions, "
     r"got int64 of shape \(3\)"),
    (lambda: qact.quantile_activation(torch.zeros(0, 3)), "expected at least one value"),
    (lambda: qact.quantile_activation(torch.zeros(2, 3), levels=1), r"levels in 2\.\.65535, got 1"),
    (lambda: qact.quantile_activation(torch.zeros(2, 3), bandwidth=0.0), "finite bandwidth > 0"),
    (lambda: qact.quantile_activation(torch.zeros(2, 3), bound=float("nan")), "finite bound > 0"),
    (lambda: qact.quantile_layer(torch.zeros(1, 3)), "more than one value per channel"),
    (lambda: qact.quantile_layer(torch.zeros(2, 3), levels=256), r"levels in 2\.\.255, got 256"),
    (lambda: qact.quantile_layer(torch.zeros(2, 3), torch.ones(4)), r"weight_in .* shape \(3\)"),
])
def test_messages(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def stepped(x):
    """The same values, every other one in memory."""
    return torch.stack([x, x], -1).select(-1, 0)


# (64, 8, 32, 32): channels so long that the order of their sums follows the layout.
@pytest.mark.parametrize("shape", [(4, 3, 5, 6), (64, 8, 32, 32)])
@pytest.mark.parametrize("layout", [
    lambda x: x.to(memory_format=torch.channels_last), stepped,
    lambda x: x[:1].to(memory_format=torch.channels_last).expand_as(x)])
def test_saved_tensors_may_come_back_in_another_layout(shape, layout):
    x, grad = layout(torch.randn(shape)).requires_grad_(), torch.randn(shape)
    (expected,) = torch.autograd.grad(qact.quantile_layer(x)[0], x, grad)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.contiguous(), lambda t: t):
        y = qact.quantile_layer(x)[0]
    (found,) = torch.autograd.grad(y, x, grad)
    assert torch.equal(found, expected)


def test_devices_do_not_mix():
    x, weight = torch.randn(8, 3), torch.ones(3)
    with pytest.raises(RuntimeError, match=r"\[quantile_layer\] expected weight_in on cpu, as x, "
                                           "got meta"):
        qact.quantile_layer(x, weight.to("meta"))
    with pytest.raises(RuntimeError, match=r"\[quantile_layer\] expected weight_in on meta, as x, "
                                           "got cpu"):
        qact.quantile_layer(x.to("meta"), weight)
