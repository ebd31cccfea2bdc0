"""Every operator on a GPU: values and gradients, layouts, types, and what is refused."""

import pytest
import torch
from calls import NUMBERS, calls, op, ops, tensor_places, vectors
from gpu import on_gpu
from oracle import Parts, check_layer, gradient

from qact import functional as QF

ROUNDING = {torch.float32: 0.0, torch.bfloat16: 2.0 ** -8, torch.float16: 2.0 ** -11}
SHAPES = [(64, 5), (8, 3, 5, 6), (16, 4, 8, 8), (16, 4, 32, 32), (2, 3, 200, 200), (1, 2, 7, 5, 9)]


def moved(arguments):
    return [a.cuda() if isinstance(a, torch.Tensor) else a for a in arguments]


def values(shape, dtype=torch.float32):
    return (torch.randn(shape) * 2 + 1).to(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_the_layer_and_its_gradients(shape, dtype):
    x, four = values(shape, dtype), vectors(4, shape[1])
    grad_y = gradient(x)
    here = x.cuda().requires_grad_()
    parameters = [v.cuda().requires_grad_() for v in four]
    y = QF.quantile_layer(here, *parameters)[0]
    y.backward(grad_y.cuda())
    assert y.dtype == here.grad.dtype == dtype
    if x.numel() // shape[1] > 20000:  # the oracle would take too long
        wanted = QF.quantile_layer(x.float(), *four)[0]
        assert (y.cpu().float() - wanted).abs().mean() < 0.03
        return
    check_layer(Parts(x, four, grad_y), y.detach(), here.grad,
                torch.stack([p.grad for p in parameters]), ROUNDING[dtype])


LAYOUTS = {
    "channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(2, 3),
    "sliced": lambda x: x[:, 1:5, ::2],
    "expanded": lambda x: x[:, :, :1].expand(8, 6, 12, 10),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    base = values((8, 6, 12, 10))
    x, here = LAYOUTS[layout](base), LAYOUTS[layout](base.cuda()).requires_grad_()
    four, grad_y = vectors(4, x.shape[1]), gradient(x)
    parameters = [v.cuda().requires_grad_() for v in four]
    y = QF.quantile_layer(here, *parameters)[0]
    y.backward(grad_y.cuda())
    assert y.stride() == torch.empty_like(here).stride()
    check_layer(Parts(x, four, grad_y), y.detach(), here.grad,
                torch.stack([p.grad for p in parameters]))


@pytest.mark.parametrize("scope", [(2, 0), (4, 0), (0, 2), (1, 3), (2, 100)])
@pytest.mark.parametrize("keep", [False, True])
def test_scopes(scope, keep):
    x, four = values((7, 4, 9, 9)), vectors(4, 4)
    grad_y = gradient(x)
    here, *parameters = (v.cuda().requires_grad_(keep) for v in (x, *four))
    y, stats, context = QF.quantile_layer(here, *parameters, track=True, image_channels=scope[0],
                                          context_images=scope[1])
    _, of, counts = QF.quantile_layer(x, *four, track=True, image_channels=scope[0],
                                      context_images=scope[1])
    torch.testing.assert_close(stats.cpu()[:, :4], of[:, :4], rtol=1e-3, atol=1e-3)
    assert context.shape == counts.shape and torch.equal(context.sum(1).cpu(), counts.sum(1))
    if keep:
        y.backward(grad_y.cuda())
    check_layer(Parts(x, four, grad_y, scope=scope), y.detach(), here.grad,
                torch.stack([p.grad for p in parameters]) if keep else None)


@pytest.mark.parametrize("name", ["context_build", "context_blend", "context_quantiles", "quantiles",
                                  "quantile_apply", "quantile_apply_backward", "layer_tracked"])
def test_others_agree_with_the_cpu(name):
    arguments = calls()[name]
    found, expected = op(name)(*moved(arguments)), op(name)(*arguments)
    if isinstance(found, torch.Tensor):
        found, expected = (found,), (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.is_cuda and ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
        atol = 3 if ours.dtype == torch.int64 else 1e-3
        if name == "context_build":  # a fused multiplication may carry a value over an edge
            assert (ours.cpu() - theirs).abs().sum() <= 4 * 65536
            continue
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-3, atol=atol)


@pytest.mark.parametrize("quantised,levels", [(True, 100), (True, 300), (False, 100)])
def test_the_activation(quantised, levels):
    x = torch.randn(40, 3)
    grads = []
    for device in ("cpu", "cuda"):
        here = x.detach().to(device).requires_grad_()
        y = QF.quantile_activation(here, levels, algorithm="exact", quantised=quantised)
        y.square().sum().backward()
        grads.append((y.detach().cpu(), here.grad.cpu()))
    (wanted, theirs), (found, ours) = grads
    assert (found - wanted).abs().max() <= 1.01 / levels
    assert (ours - theirs).norm() <= 0.03 * theirs.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_tracking_statistics_of_any_type(dtype, momentum):
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        arguments = list(calls()["layer_track"])
        arguments[:4] = [a.to(dtype) for a in arguments[:4]]
        arguments[8] = momentum
        arguments = [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments]
        ops.layer_track(*arguments)
        results.append(arguments[:6])
    rtol = 2.0 ** -7 if dtype in (torch.float16, torch.bfloat16) else 1e-5
    for i, (ours, theirs) in enumerate(zip(*results)):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(theirs.cpu(), ours, rtol=rtol, atol=3 if i == 4 else 1e-5)


@pytest.mark.parametrize("name,place", tensor_places())
def test_a_tensor_on_another_device_is_refused(name, place):
    for device in ("cpu", "meta"):
        arguments = moved(calls()[name])
        arguments[place] = arguments[place].to(device)
        with pytest.raises(RuntimeError, match=r"\] expected .* on (cuda:0|cpu|meta)"):
            op(name)(*arguments)
    torch.cuda.synchronize()  # and no kernel has begun


def test_float64_is_refused():
    for name in ("layer_forward", "quantile_apply", "activation_forward", "context_build"):
        arguments = moved(calls()[name])
        arguments[0] = arguments[0].double()
        with pytest.raises(RuntimeError, match=r"expected float32, bfloat16 or float16 on CUDA"):
            op(name)(*arguments)


def test_numbers_and_shapes_are_checked():
    x = torch.randn(4, 3, device="cuda")
    with pytest.raises(RuntimeError, match="expected more than one value per channel"):
        QF.quantile_layer(x[:1])
    with pytest.raises(RuntimeError, match="levels in 2..255"):
        QF.quantile_layer(x, levels=256)
    with pytest.raises(RuntimeError, match="expected weight_in to be a floating tensor of shape"):
        QF.quantile_layer(x, torch.ones(2, device="cuda"))
    with pytest.raises(NotImplementedError, match="expected density_samples=0 on CUDA"):
        QF.quantile_activation(x, density_samples=5)


@pytest.mark.parametrize("shape", [(8, 3, 5, 6), (16, 8, 32, 32)])
def test_saved_tensors_may_come_back_in_another_layout(shape):
    x = values(shape).cuda().to(memory_format=torch.channels_last).requires_grad_()
    grad = torch.randn_like(x)
    (expected,) = torch.autograd.grad(QF.quantile_layer(x)[0], x, grad)
    with torch.autograd.graph.save_on_cpu():
        y = QF.quantile_layer(x)[0]
    (found,) = torch.autograd.grad(y, x, grad)
    assert torch.equal(found, expected)


def test_what_is_kept_is_what_compilers_are_told():
    for shape in SHAPES:
        for numbers in ((0, 0), (1, 0), (0, 1)):
            if len(shape) == 2 and numbers != (0, 0):
                continue  # contexts of one value
            four = vectors(4, shape[1])
            arguments = (*NUMBERS, *numbers, True, True)
            real = ops.layer_forward(values(shape).cuda(), *on_gpu(four), *arguments)
            with torch._subclasses.FakeTensorMode():
                x = torch.empty(shape, device="cuda")
                fake = ops.layer_forward(x, *(torch.empty(shape[1], device="cuda") for _ in four),
                                         *arguments)
            for ours, theirs in zip(real, fake, strict=True):
                assert (ours.shape, ours.dtype, ours.stride()) == (
                    theirs.shape, theirs.dtype, theirs.stride())


def test_infinities_and_nan():
    x = torch.randn(300, 3)
    x[0, 1], x[5, 2] = torch.inf, torch.nan
    y = QF.quantile_layer(x.cuda())[0].cpu()
    assert y[:, 0].isfinite().all() and y[:, 1:].isnan().all()


@pytest.mark.hardware
def test_another_stream_is_used():
    x = values((64, 8, 16, 16)).cuda()
    expected = QF.quantile_layer(x)[0]
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)  # what is queued later must wait for it
        changed = x * 1
        changed[:, 0] += torch.arange(64, device="cuda").view(64, 1, 1)
        found = QF.quantile_layer(changed)[0]
    side.synchronize()
    assert torch.equal(found[:, 1:], expected[:, 1:])
    assert not torch.equal(found[:, 0], expected[:, 0])
