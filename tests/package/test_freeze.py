"""freeze: running contexts as constants."""

import copy

import pytest
import torch
from torch import nn

import qact


@pytest.mark.parametrize("options", [{}, {"image_share": 0.5}, {"scope": "image"},
                                     {"norm_out": False}, {"norm_in": False, "norm_out": False},
                                     {"levels": 9}, {"affine": False}])
@pytest.mark.parametrize("portable", [False, True])
def test_frozen_equals_tracked(options, portable):
    layer = qact.QuantileActivation(6, **options)
    for _ in range(3):
        layer(torch.randn(30, 6, 4, 4) * 2 + 1)
    if portable and layer._image_channels:
        with pytest.raises(ValueError, match="ranked in their image"):
            qact.freeze(layer, portable=True)
        return
    x = torch.randn(10, 6, 4, 4) * 3
    if not layer._image_channels:
        x[0, 0, 0, 0], x[0, 1, 0, 0], x[0, 1, 0, 1] = torch.nan, torch.inf, -torch.inf
    frozen = qact.freeze(layer, portable)
    expected = layer.eval()(x).detach()
    assert torch.equal(frozen(x).nan_to_num(7), expected.nan_to_num(7))
    assert frozen(x[:0] if not layer._image_channels else x[:1]).shape[1:] == x.shape[1:]


@pytest.mark.parametrize("options", [{}, {"image_share": 0.5}])
def test_a_frozen_model_takes_another_type(options):
    model = nn.Sequential(nn.Conv2d(3, 6, 3), qact.QuantileActivation(6, **options))
    x = torch.randn(20, 3, 8, 8)
    model(x)
    frozen = qact.freeze(model)
    expected = frozen(x).detach()
    assert torch.equal(copy.deepcopy(frozen).to("cpu")(x), expected)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        y = copy.deepcopy(frozen).to(dtype)(x.to(dtype))
        assert y.dtype == dtype
        assert (y.float() - expected).abs().mean() < 0.05


@pytest.mark.parametrize("dtype", [None, torch.float16])
def test_a_frozen_layer_goes_to_a_device_without_float64(dtype):
    frozen = qact.freeze(qact.QuantileActivation(6))
    assert frozen.thresholds.dtype == torch.float64

    def to_mps(t):
        if t.dtype == torch.float64:  # as torch on such a machine
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return torch.empty_like(t, device="mps", dtype=dtype if t.is_floating_point() else None)

    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        frozen._apply(to_mps)
        assert frozen.scale.device.type == "mps" and frozen.thresholds.dtype == torch.float32


def test_a_frozen_classifier_predicts():
    classifier, x = qact.QuantileClassifier(8, 4), torch.randn(50, 8)
    for _ in range(3):
        classifier(torch.randn(30, 8) * 2)
    expected = classifier.eval().predict(x)
    rank = classifier.activation.rank(classifier.linear(x))
    for portable in (False, True):
        frozen = qact.freeze(classifier, portable)
        assert torch.equal(frozen(x), classifier(x)) and torch.equal(frozen.predict(x), expected)
        found = frozen.activation.rank(classifier.linear(x))
        torch.testing.assert_close(found, rank, rtol=1e-6, atol=1e-6)
        ends = torch.tensor([[torch.inf], [-torch.inf], [torch.nan], [1e6], [-1e6]]).expand(5, 4)
        torch.testing.assert_close(frozen.activation.rank(ends), classifier.activation.rank(ends),
                                   equal_nan=True)
    with pytest.raises(ValueError, match="expected norm_out=False for rank"):
        qact.freeze(qact.QuantileActivation(4)).rank(x)


def test_a_layer_of_two_names_is_frozen_under_both():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = qact.QuantileActivation(6)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    model, x = Shared(), torch.randn(30, 6)
    model(x)
    frozen = qact.freeze(model)
    assert isinstance(frozen.a, qact.FrozenQuantileActivation) and frozen.b is frozen.a
    assert torch.equal(frozen(x), model.eval()(x))


def test_gradients_of_a_frozen_layer():
    layer, x = qact.QuantileActivation(6), torch.randn(30, 6, requires_grad=True)
    layer(x)
    grads = [torch.autograd.grad(f(x).square().sum(), x)[0]
             for f in (qact.freeze(layer), layer.eval())]
    torch.testing.assert_close(*grads)
    portable = qact.freeze(nn.Sequential(nn.Linear(6, 6), layer), portable=True)
    y = portable(x)  # weights that require a gradient are no request for one
    with pytest.raises(RuntimeError, match="expected no gradient to be asked of a model"):
        y.sum().backward()


@pytest.mark.parametrize("strict", [False, True])
def test_a_frozen_model_exports_with_weights_that_learn(strict):
    model = nn.Sequential(nn.Conv2d(3, 6, 3), qact.QuantileActivation(6))
    x = torch.randn(20, 3, 8, 8)
    model(x)
    frozen = qact.freeze(model, portable=True)
    torch.testing.assert_close(torch.export.export(frozen, (x,), strict=strict).module()(x), frozen(x))


def test_freeze_needs_a_layer():
    with pytest.raises(ValueError, match="expected a model with a QuantileActivation"):
        qact.freeze(nn.ReLU())
    with pytest.raises(ValueError, match="expected layers with running contexts"):
        qact.freeze(qact.QuantileActivation(3, track_running_stats=False))


class Doubled(qact.QuantileActivation):
    def forward(self, x):
        return 2 * super().forward(x)


def test_what_a_frozen_layer_would_lose_is_refused():
    with pytest.raises(ValueError, match="expected layers with the forward of QuantileActivation, got "
                                         "a Doubled '0'"):
        qact.freeze(nn.Sequential(Doubled(3)))
    hooked = qact.QuantileActivation(3)
    hooked.register_forward_hook(lambda module, inputs, output: 3 * output)
    for model in (hooked, nn.Sequential(hooked)):
        with pytest.raises(ValueError, match=r"\[freeze\] expected no hooks"):
            qact.freeze(model)
