"""The same bits as the C++ library's operators, loaded into the same process."""

import pytest
import torch

import qact
from qact import functional as QF

SHAPES = [(40, 3), (4, 3, 5, 6), (16, 8, 4, 4), (300, 2, 3), (2, 3, 4, 5, 6)]


def inputs(shape, dtype, layout):
    x = torch.randn(shape, dtype=torch.float64).to(dtype)
    if layout == "channels_last" and x.dim() == 4:
        x = x.to(memory_format=torch.channels_last)
    if layout == "transposed" and x.dim() > 3:
        x = x.transpose(2, 3)
    if layout == "sliced":
        x = torch.cat([x, x], 1)[:, ::2]
    return x.requires_grad_()


def both(f, g, x, *vectors):
    """Values and gradients of two functions of the same tensors."""
    results = []
    for function in (f, g):
        copies = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_()
                  for t in (x, *vectors)]
        y = function(*copies)
        grad = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
        y.backward(grad)
        results.append((y.detach(), *(t.grad for t in copies)))
    return results


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.stride() == b.stride()
        assert torch.equal(a, b)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", ["plain", "channels_last", "transposed", "sliced"])
def test_layer(cpp, shape, dtype, layout):
    x = inputs(shape, dtype, layout)
    vectors = [torch.rand(x.shape[1]) + 0.5 for _ in range(4)]
    assert_same(*both(lambda *a: QF.quantile_layer(*a)[0], lambda *a: cpp.quantile_layer(*a)[0],
                      x, *vectors))


@pytest.mark.parametrize("options", [{"image_channels": 2}, {"context_images": 3},
                                     {"image_channels": 1, "context_images": 2},
                                     {"levels": 7, "bound": 3.0, "positive_share": 0.7},
                                     {"algorithm": "exact"}, {"algorithm": "binned"}])
def test_layer_in_scopes_and_with_options(cpp, options):
    x, vectors = inputs((8, 4, 3, 5), torch.float32, "plain"), [torch.rand(4) + 0.5] * 4
    assert_same(*both(lambda *a: QF.quantile_layer(*a, **options)[0],
                      lambda *a: cpp.quantile_layer(*a, **options)[0], x, *vectors))
    found = QF.quantile_layer(x.detach(), track=True, **options)
    expected = cpp.quantile_layer(x.detach(), track=True, **options)
    assert_same((found[0], found[1][:, :4], found[2]),
                (expected[0], expected[1][:, :4], expected[2]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"levels": 9, "quantised": False}, {"algorithm": "exact"},
                                     {"density_samples": 50, "seed": 3}])
def test_activation(cpp, shape, options):
    x = inputs(shape, torch.float32, "plain")
    assert_same(*both(lambda t: QF.quantile_activation(t, **options),
                      lambda t: cpp.quantile_activation(t, **options), x))


@pytest.mark.parametrize("layout", ["plain", "channels_last", "transposed"])
@pytest.mark.parametrize("quantised", [True, False])
def test_apply(cpp, layout, quantised):
    x = inputs((4, 3, 5, 6), torch.float32, layout)
    q = torch.randn(3, 20, dtype=torch.float64).sort(1).values
    vectors = [torch.rand(3) + 0.5 for _ in range(4)]
    assert_same(*both(lambda t, *v: QF.quantile_apply(t, q, *v, quantised=quantised),
                      lambda t, *v: cpp.quantile_apply(t, q, *v, quantised=quantised),
                      x, *vectors))


def test_contexts(cpp):
    a, b = torch.randn(30, 3), torch.randn(50, 3)
    scale = torch.rand(3)
    assert torch.equal(QF.context_build(a, scale), cpp.context_build(a, scale))
    first, second = QF.context_build(a), QF.context_build(b)
    values = 1024.0
    for found, share in ((QF.context_blend(first, second, images=5, n=50, momentum=0.3), 0.3),
                         (QF.context_blend(first, second, images=5, n=50,
                                           batches=torch.tensor(3)), 0.25)):
        assert torch.equal(found, cpp.context_blend(first, (1 - share) * values, second,
                                                    share * values))
    total = 16.0 + 50
    found = QF.context_blend(first, second, images=50, n=2500, prior=16.0)
    share, values = 50 / total, 2500 * (total / 50)
    assert torch.equal(found, cpp.context_blend(first, (1 - share) * values, second,
                                                share * values))
    assert torch.equal(QF.context_quantiles(found, 9), cpp.context_quantiles(found, 9))
    assert torch.equal(QF.quantiles(a, 9), cpp.quantiles(a, 9))


def test_layers_of_two_libraries_in_one_process(cpp):
    """Loading both is sound: each has its own operators and hides its symbols."""
    x = torch.randn(8, 4, 3, 3)
    assert torch.equal(qact.QuantileActivation(4)(x), cpp.quantile_layer(x)[0])
