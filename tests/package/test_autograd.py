"""Gradients in eager mode and by torch.func; what is refused."""

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, vmap

import qact
from qact import functional as QF

pytestmark = pytest.mark.usefixtures("recorded")


def layer(x):
    return QF.quantile_layer(x)[0]


def applied(x):
    return QF.quantile_apply(x, torch.linspace(-2, 2, 9).repeat(3, 1))


FUNCTIONS = {"layer": layer, "activation": QF.quantile_activation, "apply": applied}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_registered_and_eager_gradients_agree(name):
    x = torch.randn(10, 3, 4)
    weight = torch.randn(10, 3, 4)
    eager = x.clone().requires_grad_()
    (FUNCTIONS[name](eager) * weight).sum().backward()
    assert torch.equal(grad(lambda t: (FUNCTIONS[name](t) * weight).sum())(x), eager.grad)
    assert eager.grad.abs().sum() > 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_is_a_loop(name):
    x = torch.randn(5, 10, 3, 4)
    for dim in (0, 2):
        moved = x.movedim(0, dim)
        assert torch.equal(vmap(FUNCTIONS[name], in_dims=dim)(moved),
                           torch.stack([FUNCTIONS[name](sample) for sample in x]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_of_no_samples(name):
    x = torch.randn(10, 0, 3, 4)
    y = vmap(FUNCTIONS[name], in_dims=1, out_dims=1)(x)
    assert y.shape == x.shape and y.dtype == x.dtype
    assert vmap(grad(lambda t: FUNCTIONS[name](t).sum()), in_dims=1)(x).shape == (0, 10, 3, 4)
    stats = vmap(lambda t: QF.quantile_layer(t, track=True)[1:])(torch.randn(0, 10, 3))
    assert [t.shape for t in stats] == [(0, 3, 8), (0, 3, 256)]


@pytest.mark.parametrize("mode", ["tracked", "batch"])
def test_gradients_per_sample(mode):
    model = nn.Sequential(nn.Conv2d(2, 3, 3), qact.QuantileActivation2d(3), nn.Flatten(),
                          nn.Linear(48, 2))
    model(torch.randn(20, 2, 6, 6))
    qact.set_context_mode(model.eval(), mode)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    buffers = dict(model.named_buffers())
    x, labels = torch.randn(6, 2, 6, 6), torch.randint(2, (6,))

    def loss(p, image, label):
        logits = functional_call(model, (p, buffers), (image[None],))
        return nn.functional.cross_entropy(logits, label[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, labels)
    for i in range(6):
        expected = grad(loss)(parameters, x[i], labels[i])
        for name in parameters:
            torch.testing.assert_close(found[name][i], expected[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tangents_are_refused(name, requires_grad):
    x = torch.randn(10, 3, 4, requires_grad=requires_grad)
    with pytest.raises(NotImplementedError, match="expected tensors without tangents"):
        jvp(FUNCTIONS[name], (x.detach(),), (torch.ones_like(x),))
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="without tangents"):
        FUNCTIONS[name](forward_ad.make_dual(x, torch.ones_like(x)))


def test_a_tracked_layer_refuses_tangents():
    model = qact.QuantileActivation(3).eval()
    with pytest.raises(NotImplementedError, match="without tangents"):
        jvp(model, (torch.randn(10, 3),), (torch.ones(10, 3),))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_differentiating_twice_is_refused(name):
    x = torch.randn(10, 3, 4, requires_grad=True)
    (first,) = torch.autograd.grad(FUNCTIONS[name](x).square().sum(), x, create_graph=True)
    with pytest.raises((RuntimeError, NotImplementedError), match="once|differentiated"):
        first.sum().backward()


def test_only_what_is_wanted_has_a_gradient():
    x, weight = torch.randn(10, 3), torch.ones(3, requires_grad=True)
    y, stats, context = QF.quantile_layer(x, weight_out=weight, track=True)
    assert y.requires_grad and not stats.requires_grad and not context.requires_grad
    y.sum().backward()
    assert weight.grad is not None and x.grad is None
    with torch.no_grad():
        assert not QF.quantile_layer(x, weight_out=weight)[0].requires_grad


def test_saved_tensors_may_be_kept_elsewhere():
    x = torch.randn(10, 3, 4, 4, requires_grad=True)
    (expected,) = torch.autograd.grad(layer(x).square().sum(), x)
    with torch.autograd.graph.save_on_cpu():
        (found,) = torch.autograd.grad(layer(x).square().sum(), x)
    assert torch.equal(found, expected)


def test_activation_checkpointing_gives_the_same_bits():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), qact.QuantileActivation2d(3))
    x = torch.randn(8, 2, 6, 6, requires_grad=True)
    (expected,) = torch.autograd.grad(model(x).square().sum(), x)
    y = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
    assert torch.equal(torch.autograd.grad(y.square().sum(), x)[0], expected)


def test_raw_operator_without_keep_names_the_reason():
    x = torch.randn(10, 3, requires_grad=True)
    numbers = (1e-5, 100, 100.0, 0.5, 0.5, 0, 0, 0)
    with pytest.raises(RuntimeError, match="expected keep=True"):
        torch.ops.qact_python.layer_forward(x, None, None, None, None, *numbers, False, False)


def saved_bytes(x, **options):
    """Of all that the layer keeps for its backward pass."""
    found = []

    def keep(t):
        found.append(t.numel() * t.element_size())
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        y = QF.quantile_layer(x, **options)[0]
    return sum(found), y


@pytest.mark.parametrize("shape,most", [((16, 4, 64, 64), 1.04), ((16, 4, 32, 32), 1.13),
                                        ((16, 4, 16, 16), 1.5), ((32, 4, 8, 8), 1.95)])
def test_a_long_context_keeps_a_code_byte_a_value_and_no_x(shape, most):
    x = torch.randn(shape, requires_grad=True)
    assert saved_bytes(x)[0] <= most * x.numel()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("scope", [{}, {"image_channels": 2}, {"image_channels": 4},
                                   {"context_images": 3}, {"image_channels": 1, "context_images": 2}])
@pytest.mark.parametrize("shape", [(8, 4), (8, 4, 4, 4), (8, 4, 16, 16), (8, 4, 32, 32)])
def test_never_more_is_kept_than_x_and_a_byte_a_value(shape, scope, dtype):
    if len(shape) == 2 and scope.get("image_channels"):
        return  # a context of one value
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    stats = 64 * shape[1]
    assert saved_bytes(x, **scope)[0] <= (x.element_size() + 1) * x.numel() + stats


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("grad", ["contiguous", "channels_last", "expanded"])
def test_without_x_its_gradient_has_its_layout(layout, grad):
    x = torch.randn(8, 4, 16, 16).to(memory_format=layout).requires_grad_()
    grad_y = torch.randn(8, 4, 16, 16)
    if grad == "channels_last":
        grad_y = grad_y.to(memory_format=torch.channels_last)
    elif grad == "expanded":
        grad_y = torch.randn(8, 4, 1, 1).expand(8, 4, 16, 16)
    layer(x).backward(grad_y)
    plain = x.detach().contiguous().requires_grad_()
    layer(plain).backward(grad_y.contiguous())
    assert x.grad.is_contiguous(memory_format=layout)
    torch.testing.assert_close(x.grad, plain.grad)


@pytest.mark.parametrize("shape", [(8, 3, 4, 4), (8, 3, 1, 1)])
def test_a_hook_may_hand_x_back_in_another_layout(shape):
    x = torch.randn(8, 3, 4, 4)
    x = (x[:, :, :1, :1].expand(8, 3, 4, 4) if shape[2] == 1 else x).detach().requires_grad_()
    weight = torch.randn(8, 3, 4, 4)
    expected = torch.autograd.grad((layer(x) * weight).sum(), x)[0]
    with torch.autograd.graph.saved_tensors_hooks(
            lambda t: t.clone(memory_format=torch.channels_last) if t.dim() == 4 else t,
            lambda t: t):
        y = layer(x)
    assert torch.equal(torch.autograd.grad((y * weight).sum(), x)[0], expected)
