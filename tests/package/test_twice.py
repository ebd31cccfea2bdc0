"""Differentiating twice is refused, also where the gradient does not look as if it depended on x."""

import pytest
import torch
from torch import nn
from torch.func import grad, vmap

import qact
from qact import functional as QF

pytestmark = pytest.mark.usefixtures("recorded")

LAYERS = {
    "plain": {}, "affine=False": {"affine": False}, "image": {"affine": False, "scope": "image"},
    "inner norm": {"affine": False, "norm_out": False},
    "neither": {"norm_in": False, "norm_out": False},
    "outer norm": {"affine": False, "norm_in": False},
}
TWICE = "expected to be differentiated once"


def penalty(f, x):
    """Of the gradient of a linear function of f(x), as gradient penalties are."""
    weight = torch.randn_like(x)
    (first,) = torch.autograd.grad((f(x) * weight).sum(), x, create_graph=True)
    return first.square().sum()


@pytest.mark.parametrize("mode", ["train", "tracked", "prior", "batch", "stream"])
@pytest.mark.parametrize("name", LAYERS)
def test_of_a_layer(name, mode):
    conv, layer = nn.Conv2d(3, 6, 3), qact.QuantileActivation(6, **LAYERS[name]).train(mode == "train")
    layer.context_mode = "tracked" if mode == "train" else mode
    with pytest.raises(RuntimeError, match=TWICE):
        penalty(layer, conv(torch.randn(16, 3, 10, 10))).backward()


@pytest.mark.parametrize("make", [
    lambda: qact.SyncQuantileActivation(6, affine=False),
    lambda: qact.freeze(qact.QuantileActivation(6))])
def test_of_other_layers(make):
    with pytest.raises(RuntimeError, match=TWICE):
        penalty(make(), torch.randn(500, 6, requires_grad=True)).backward()


def apply(x):
    return QF.quantile_apply(x, torch.linspace(-2, 2, 9).repeat(2, 1))


@pytest.mark.parametrize("f", [lambda x: QF.quantile_layer(x)[0], QF.quantile_activation, apply])
@pytest.mark.parametrize("count", [10, 3000])
def test_of_torch_func(f, count):
    x, weight = torch.randn(count, 2), torch.randn(count, 2)

    def first(z):
        return grad(lambda t: (f(t) * weight).sum())(z)

    with pytest.raises(NotImplementedError, match="differentiated"):
        grad(lambda z: first(z).square().sum())(x)
    with pytest.raises(NotImplementedError, match="differentiated"):
        vmap(grad(lambda z: first(z).square().sum()))(x[None])
    mixed = x.clone().requires_grad_()  # torch.func inside, autograd outside
    with pytest.raises((RuntimeError, NotImplementedError), match="differentiated"):
        first(mixed).square().sum().backward()
    assert torch.equal(vmap(first)(x[None])[0], first(x)), "once is what it was"


def test_of_the_operator_and_of_an_exported_program():
    x = torch.randn(500, 2, requires_grad=True)
    numbers = (1e-5, 100, 100.0, 0.5, 0.5, 0, 0, 0)

    def operator(z):
        return torch.ops.qact_python.layer_forward(z, None, None, None, None, *numbers, True, False)[0]

    exported = torch.export.export(qact.QuantileActivation(2, affine=False), (x,)).module()
    for f in (operator, exported):
        with pytest.raises(RuntimeError, match=TWICE):
            penalty(f, x).backward()


def test_a_gradient_that_might_be_differentiated_is_the_same():
    x, weight = torch.randn(500, 6, requires_grad=True), torch.randn(500, 6)
    for options in LAYERS.values():
        layer = qact.QuantileActivation(6, **{**options, "scope": "batch"})
        inputs = [x, *layer.parameters()]
        grads = [torch.autograd.grad((layer(x) * weight).sum(), inputs, create_graph=again)
                 for again in (False, True)]
        assert all(torch.equal(a, b) and b.requires_grad for a, b in zip(*grads))
