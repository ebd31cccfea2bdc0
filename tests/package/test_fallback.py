"""The fallback for devices without kernels, run on the CPU against the exact kernels; and what
CUDA tensors are told where its library is missing."""

import copy
import warnings

import pytest
import torch
from calls import NUMBERS, calls, op, ops, vectors

import qact
from qact import _fallback, _fallback_contexts

EXACT = (*NUMBERS[:5], 1)


def awkward(shape):
    x = torch.randn(shape, dtype=torch.float64)
    x[0, 0] = x[-1, 0]  # ties
    x[:, 1] = x[:, 1].abs() + 1  # no negative value
    x[:, 2] = (x[:, 2] * 2).round()  # ties and zeros
    return x


@pytest.mark.parametrize("shape,scope", [((8, 4), (4, 0)), ((8, 4), (1, 0)), ((8, 4), (0, 1)),
                                         ((9, 4, 1), (0, 4))])
def test_contexts_of_one_value_are_refused(shape, scope):
    x = torch.randn(shape)
    for forward in (ops.layer_forward, _fallback.layer_forward):
        with pytest.raises(RuntimeError, match="expected more than one value per context"):
            forward(x, None, None, None, None, *EXACT, *scope, True, True)


@pytest.mark.parametrize("shape", [(40, 4), (6, 4, 3, 5)])
@pytest.mark.parametrize("scope", [(0, 0), (2, 0), (0, 4), (1, 5), (4, 0)])
def test_layer(shape, scope):
    if len(shape) == 2 and scope[0]:
        pytest.skip("one value per image")
    x, four = awkward(shape), vectors(4, 4, torch.float64)
    numbers = (*EXACT, *scope)
    expected = ops.layer_forward(x, *four, *numbers, True, True)
    found = _fallback.layer_forward(x, *four, *numbers, True, True)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[2][:, :4], expected[2][:, :4], rtol=1e-9, atol=1e-9)
    assert torch.equal(found[3], expected[3])
    grad = torch.randn(shape, dtype=torch.float64)
    arguments = (*four[:3], *numbers)
    expected = ops.layer_backward(grad, x, expected[1], expected[2], *arguments)
    found = _fallback.layer_backward(grad, x, found[1], found[2], *arguments)
    # The kernels work from one code byte a value; the next test is the exact one.
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).abs().max() < 0.03 * theirs.abs().max()


def test_gradients_of_the_layer_are_those_of_its_parts():
    x, four = awkward((40, 4)), vectors(4, 4, torch.float64)
    grad = torch.randn(40, 4, dtype=torch.float64)
    tensors = [t.clone().requires_grad_() for t in (x, *four)]

    def norm(v, weight, bias):
        return torch.nn.functional.batch_norm(v, None, None, weight, bias, True, 0.0, EXACT[0])

    z = norm(tensors[0], tensors[1], tensors[2])
    y = norm(qact.functional.quantile_activation(z, algorithm="exact"), tensors[3], tensors[4])
    y.backward(grad)
    grad_x, affine = _fallback.layer_backward(grad, x, None, None, *four[:3], *EXACT, 0, 0)
    torch.testing.assert_close(grad_x, tensors[0].grad, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(affine, torch.stack([t.grad for t in tensors[1:]]), rtol=1e-6,
                               atol=1e-6)


@pytest.mark.parametrize("quantised", [True, False])
def test_activation_with_awkward_values(quantised):
    x = awkward((40, 4))
    x[1, 0], x[2, 0], x[3, 0], x[4, 3], x[5, 3] = torch.nan, torch.inf, -torch.inf, 100.0, -100.0
    arguments = (x, 9, 100.0, 0.7, 0.5, 1, quantised, 0, 0, True)
    expected = ops.activation_forward(*arguments)
    found = _fallback.activation_forward(*arguments)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-9, atol=1e-9, equal_nan=True)
    finite = x.isfinite()
    torch.testing.assert_close(found[1][finite], expected[1][finite], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name,quantised", [
    *((name, True) for name in ("quantile_apply", "quantile_apply_backward", "layer_tracked",
                                "context_build", "context_quantiles", "quantiles")),
    ("quantile_apply", False), ("layer_tracked", False)])
def test_others(name, quantised):
    arguments = [quantised if a is True else a for a in calls()[name]]
    if not quantised:
        arguments[0][0, 0, 0, :5] = torch.tensor([torch.inf, -torch.inf, torch.nan, 1e6, -1e6])
    found, expected = getattr(_fallback, name)(*arguments), op(name)(*arguments)
    if isinstance(found, torch.Tensor):
        found, expected = (found,), (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=not quantised)


def test_contexts_on_their_edges():
    edges = _fallback_contexts.edges(torch.device("cpu"))
    x = torch.cat([edges, edges.nextafter(edges + 1), edges.nextafter(edges - 1),
                   torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e30])])[:, None]
    assert torch.equal(_fallback.context_build(x, None, None), ops.context_build(x, None, None))


def test_contexts_of_ties():
    edges = _fallback_contexts.edges(torch.device("cpu"))
    values = torch.cat([edges, edges * 1.04, torch.tensor([0.0, -0.0, torch.inf, -torch.inf])])
    for few in values.split(11):
        x = torch.cat([few.repeat(8), torch.randn(300), torch.tensor([torch.nan] * 9)])[:, None]
        assert torch.equal(_fallback.context_build(x, None, None), ops.context_build(x, None, None))


@pytest.mark.parametrize("momentum,prior", [(0.1, None), (None, None), (None, 4.0)])
def test_blends(momentum, prior):
    a, b = qact.functional.context_build(torch.randn(2, 50, 3)[0]), qact.functional.context_build(
        torch.randn(70, 3))
    for first, second in ((a, b), (a * 0, b), (a, b * 0)):
        arguments = (first, second, torch.tensor(4), prior, momentum, 7, 70)
        found, expected = _fallback.context_blend(*arguments), ops.context_blend(*arguments)
        assert (found - expected).abs().max() <= 3  # of 2^-16 values


@pytest.mark.parametrize("momentum", [0.1, None])
def test_track(momentum):
    results = []
    for track in (ops.layer_track, _fallback.layer_track):
        torch.manual_seed(0)
        arguments = list(calls()["layer_track"])
        arguments[8] = momentum
        track(*arguments)
        results.append(arguments[:6])
    for i, (ours, theirs) in enumerate(zip(*results)):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1.0 if i == 4 else 1e-6)


@pytest.mark.parametrize("n,context_images", [(1, 4), (4, 1), (49, 1)])
@pytest.mark.parametrize("track", [ops.layer_track, _fallback.layer_track])
def test_contexts_of_one_value_have_no_variance_to_track(track, n, context_images):
    arguments = list(calls()["layer_track"])
    before = [a.clone() for a in arguments[:6]]
    arguments[9:] = n, context_images, max(n, context_images)
    with pytest.raises(RuntimeError, match=r"\[layer_track\] expected .* per c(hannel|ontext)"):
        track(*arguments)
    for now, then in zip(arguments, before):
        assert torch.equal(now, then)


def test_empty_batches():
    q = torch.randn(3, 9).sort(1).values
    x = torch.randn(0, 3, 4)
    assert _fallback.quantile_apply(x, q, None, None, None, None, 0.5, True).shape == x.shape


@pytest.mark.parametrize("name", [f.__name__ for f in _fallback.FALLBACKS])
@pytest.mark.parametrize("key", ["MPS", "XPU", "HPU", "PrivateUse1"])
def test_devices_without_kernels_have_the_fallback(name, key):
    assert torch._C._dispatch_has_computed_kernel_for_dispatch_key("qact_python::" + name, key)


@pytest.fixture
def without_kernels():
    """The CPU as a device without kernels. What the fallback itself asks the CPU for stays."""
    def switch():
        for function in _fallback.FALLBACKS:
            if function.__name__ not in ("quantiles", "context_quantiles"):
                library.impl(function.__name__, function, "CPU", allow_override=True)

    with torch.library._scoped_library("qact_python", "IMPL") as library, \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is overridden
        yield switch


@pytest.mark.parametrize("mode", ["train", "tracked", "batch", "prior", "stream"])
@pytest.mark.parametrize("options", [
    {}, {"image_share": 0.5}, {"scope": "image"}, {"scope": "group", "group_images": 4},
    {"momentum": None}, {"norm_in": False, "norm_out": False}], ids=str)
def test_a_layer_without_kernels_is_the_same(without_kernels, mode, options):
    def run(layer, x):
        x = x.clone().requires_grad_()
        y = layer(x)
        (y * torch.linspace(-1, 1, y.numel()).view_as(y)).sum().backward()
        with torch.no_grad():
            again = layer(x)
        return [y.detach(), again, x.grad, *(p.grad for p in layer.parameters()),
                *layer.state_dict().values()]

    x = torch.randn(8, 6, 4, 4, dtype=torch.float64) * 2 + 1
    layer = qact.QuantileActivation(6, algorithm="exact", dtype=torch.float64, **options)
    layer(x + 1)
    layer.train(mode == "train")
    layer.context_mode = "tracked" if mode == "train" else mode
    other = copy.deepcopy(layer)
    expected = run(layer, x)
    without_kernels()
    for found, like in zip(run(other, x), expected, strict=True):
        if like.dtype == torch.int64:
            assert (found - like).abs().max() <= 8  # of 2^-16 values
        else:
            torch.testing.assert_close(found, like, rtol=0.02, atol=0.01 * float(like.abs().max()))


def test_it_warns_once():
    _fallback._warned = False
    with pytest.warns(UserWarning, match="no kernels for mps"):
        _fallback.warn_once(torch.device("mps"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _fallback.warn_once(torch.device("mps"))


def test_a_classifier_without_kernels_predicts_the_same(without_kernels):
    classifier, x = qact.QuantileClassifier(8, 4).double(), torch.randn(50, 8).double()
    classifier(torch.randn(30, 8).double())
    classifier.eval()
    results = []
    for kernels in (True, False):
        if not kernels:
            without_kernels()
        for mode in ("tracked", "prior", "stream", "batch"):
            classifier.activation.context_mode = mode
            results.append((classifier.activation.rank(classifier.linear(x)), classifier.predict(x)))
    for (rank, found), (like, expected) in zip(results[4:], results[:4], strict=True):
        torch.testing.assert_close(rank, like, rtol=1e-6, atol=1e-3)
        assert (found == expected).float().mean() > 0.95


@pytest.mark.skipif(not qact._library.CUDA_MISSING, reason="the CUDA kernels are here")
def test_cuda_without_its_library_says_what_is_missing():
    with pytest.raises(RuntimeError, match=r"\[layer_forward\] expected tensors on the CPU, got "
                                           r"some on CUDA: .*make wheel CUDA=1"):
        _fallback._missing("layer_forward")(None)
    assert torch._C._dispatch_has_kernel_for_dispatch_key("qact_python::layer_forward", "CUDA")
