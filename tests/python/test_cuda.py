"""What only a GPU shows: tensors on two devices, float64, saved tensors that come back otherwise."""

import pytest
import torch

qact = torch.ops.qact

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def devices():
    return ["cpu"] + [f"cuda:{i}" for i in range(1, torch.cuda.device_count())]


def test_tensors_on_another_device_are_named():
    x, weight = torch.randn(8, 3, device="cuda:0"), torch.ones(3)
    quantiles = torch.randn(3, 10, dtype=torch.float64).sort(1).values
    for device in devices():
        with pytest.raises(RuntimeError, match=rf"\[quantile_layer\] expected weight_in on cuda:0, "
                                               rf"as x, got {device}"):
            qact.quantile_layer(x, weight.to(device))
        with pytest.raises(RuntimeError, match=rf"\[quantile_apply\] expected quantiles on cuda:0, "
                                               rf"as x, got {device}"):
            qact.quantile_apply(x, quantiles.to(device))
    assert x.add(1).isfinite().all()  # the device still works


def test_float64_is_refused():
    with pytest.raises(RuntimeError, match=r"expected float32, bfloat16 or float16 on CUDA, "
                                           r"got float64 of shape \(8,3\): .*x\.to\(float32\)"):
        qact.quantile_layer(torch.randn(8, 3, dtype=torch.float64, device="cuda"))


@pytest.mark.parametrize("shape", [(4, 3, 5, 6), (16, 8, 32, 32)])
def test_saved_tensors_may_come_back_in_another_layout(shape):
    x = torch.randn(shape, device="cuda").to(memory_format=torch.channels_last).requires_grad_()
    grad = torch.randn_like(x)
    (expected,) = torch.autograd.grad(qact.quantile_layer(x)[0], x, grad)
    with torch.autograd.graph.save_on_cpu():
        y = qact.quantile_layer(x)[0]
    (found,) = torch.autograd.grad(y, x, grad)
    assert torch.equal(found, expected)
