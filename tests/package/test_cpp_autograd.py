"""Eager calls of the fused layer are recorded by a node in C++ where the wheel has one for this
torch, else in Python: which of the two, and that nobody can tell them apart."""

import os
import subprocess
import sys

import pytest
import torch
from conftest import BUILD
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from qact import _autograd, _library
from qact import functional as QF

FILE = f"_ops_autograd.torch-{torch.__version__.partition('+')[0]}.so"
needs_both = pytest.mark.skipif(bool(_library.CPP_AUTOGRAD_MISSING),
                                reason=_library.CPP_AUTOGRAD_MISSING)


# --- which of the two

def test_a_wheel_of_this_build_has_the_node():
    if not (BUILD / "python" / FILE).exists():
        pytest.skip("built with another torch")
    assert os.environ.get("QACT_CPP_AUTOGRAD") == "off" or _library.CPP_AUTOGRAD_MISSING == ""


@pytest.mark.parametrize("version", ["2.13.1", "2.14.0+cu130", "2.13.0a0+git123", "3.0.0"])
def test_another_version_has_none(monkeypatch, version):
    monkeypatch.delenv("QACT_CPP_AUTOGRAD", raising=False)
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(torch.ops, "load_library", lambda path: pytest.fail(f"loaded {path}"))
    expected = f"no _ops_autograd.torch-{version.partition('+')[0]}.so"
    if version.partition("+")[0] not in FILE:
        assert expected in _library._load_cpp_autograd()


def test_what_else_there_is_not(monkeypatch, tmp_path):
    monkeypatch.delenv("QACT_CPP_AUTOGRAD", raising=False)
    monkeypatch.setattr(_library, "_FOLDER", tmp_path)
    (tmp_path / FILE).write_text("no library")
    assert f"{FILE} does not load: " in _library._load_cpp_autograd()
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)
    assert _library._load_cpp_autograd() == ""
    monkeypatch.setattr(torch, "compiled_with_cxx11_abi", lambda: False)
    assert f"C++ ABI than {FILE}" in _library._load_cpp_autograd()
    monkeypatch.setenv("QACT_CPP_AUTOGRAD", "off")
    assert _library._load_cpp_autograd() == "QACT_CPP_AUTOGRAD is off"


# In a process of its own.
IMPORT = """
import torch
torch.__version__ = "2.99.1+cpu"
import qact
assert "2.99.1" in qact._library.CPP_AUTOGRAD_MISSING, qact._library.CPP_AUTOGRAD_MISSING
assert not hasattr(torch.ops.qact_python_autograd, "layer")
x = torch.randn(8, 3, requires_grad=True)
y = qact.QuantileActivation(3)(x)
y.square().sum().backward()
print(y.grad_fn.name(), x.grad.shape)
"""


def test_without_it_nothing_is_said():
    environment = {name: value for name, value in os.environ.items() if name != "QACT_CPP_AUTOGRAD"}
    found = subprocess.run([sys.executable, "-c", IMPORT], text=True, capture_output=True,
                           timeout=300, env=environment)
    assert (found.stdout, found.stderr) == ("_LayerBackward torch.Size([8, 3])\n", "")


# --- that nobody can tell

def by_both(monkeypatch, call):
    """What it returns, or the error that it raises, with the node and without."""
    found = []
    for layer in (_autograd._layer_cpp, None):
        monkeypatch.setattr(_autograd, "_layer_cpp", layer)
        torch.manual_seed(0)
        try:
            found.append(call())
        except (RuntimeError, NotImplementedError, torch.fx.proxy.TraceError) as error:
            found.append((type(error), str(error)))
    return found


def layer_and_gradients(shape, dtype, layout, affine, wanted, **options):
    """All that is computed, with its strides, and all that is kept."""
    x = torch.randn(shape).to(dtype)
    if layout == "channels_last":
        x = x.to(memory_format=torch.channels_last)
    elif layout == "sliced":
        x = torch.cat([x, x], -1)[..., ::2]
    x = x.requires_grad_("x" in wanted)
    vectors = [torch.rand(shape[1]).requires_grad_("vectors" in wanted) if affine else None
               for _ in range(4)]
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y, stats, context = QF.quantile_layer(x, *vectors, track=True, **options)
    if y.requires_grad:
        y.backward(torch.randn(shape).to(dtype).transpose(2, 3).contiguous().transpose(2, 3))
    found = [y, stats, context, *kept, *(t.grad for t in (x, *vectors) if t is not None)]
    return [(None if t is None else (t.detach(), t.dtype, t.stride(), t.requires_grad))
            for t in found]


@needs_both
@pytest.mark.parametrize("wanted", ["x", "x and vectors", "vectors", "none"])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "sliced"])
@pytest.mark.parametrize("shape,dtype,options", [
    ((8, 4, 4, 4), torch.float32, {}),
    ((8, 4, 16, 16), torch.bfloat16, {}),
    ((8, 4, 16, 16), torch.float64, {"image_channels": 2}),
    ((8, 4, 24, 24), torch.float32, {"context_images": 3, "levels": 20}),
])
def test_the_same_bits(monkeypatch, shape, dtype, options, layout, affine, wanted):
    cpp, python = by_both(monkeypatch, lambda: layer_and_gradients(
        shape, dtype, layout, affine, wanted, **options))
    assert len(cpp) == len(python)
    for a, b in zip(cpp, python):
        assert (a is None) == (b is None)
        assert a is None or (torch.equal(a[0], b[0]) and a[1:] == b[1:])


def tangent(x):
    with torch.autograd.forward_ad.dual_level():
        return QF.quantile_layer(torch.autograd.forward_ad.make_dual(x, x))


def freed(x):
    y = QF.quantile_layer(x)[0].sum()
    y.backward()
    y.backward()


def changed(x):
    z = x * 1
    y = QF.quantile_layer(z)[0]
    z.mul_(2)
    y.sum().backward()


def twice(x):
    (first,) = torch.autograd.grad(QF.quantile_layer(x)[0].square().sum(), x, create_graph=True)
    first.sum().backward()


def symbolic(x):
    torch.fx.symbolic_trace(lambda x: QF.quantile_layer(x)[0])


@needs_both
@pytest.mark.parametrize("call", [
    lambda x: QF.quantile_layer(x, torch.ones(4)),
    lambda x: QF.quantile_layer(x, bias_out=torch.ones(3, device="meta")),
    lambda x: QF.quantile_layer(x.long()),
    lambda x: QF.quantile_layer(x[:1]),
    lambda x: QF.quantile_layer(x, eps=0.0),
    lambda x: QF.quantile_layer(x, levels=256),
    tangent, freed, changed, twice, symbolic,
])
def test_the_same_error(monkeypatch, call):
    cpp, python = by_both(monkeypatch, lambda: call(torch.randn(8, 3, requires_grad=True)))
    assert cpp == python and isinstance(cpp[0], type)


@needs_both
def test_a_gradients_penalty_is_refused():
    x = torch.randn(8, 3, requires_grad=True)
    (first,) = torch.autograd.grad(QF.quantile_layer(x)[0].square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"\[quantile_layer\] expected to be differentiated once"):
        torch.autograd.grad(first.square().sum() + x.sum(), x)


class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.sum()

    @staticmethod
    def backward(ctx, grad):
        return None


@needs_both
def test_a_gradient_that_nobody_gives_is_zero(monkeypatch):
    def call():
        x = torch.randn(8, 3, requires_grad=True)
        NoGradient.apply(QF.quantile_layer(x)[0]).backward()
        return x.grad

    assert all(torch.equal(found, torch.zeros(8, 3)) for found in by_both(monkeypatch, call))


@needs_both
def test_modes_and_subclasses_see_the_same_operators(monkeypatch):
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    def call():
        seen.clear()
        with Seen():
            QF.quantile_layer(torch.randn(8, 3, requires_grad=True))[0].sum().backward()
        with Seen(), torch.inference_mode():
            QF.quantile_layer(torch.randn(8, 3))
        with FakeTensorMode():
            x = torch.randn(8, 3, requires_grad=True)
            y = QF.quantile_layer(x)[0]
            y.sum().backward()
        return type(y), x.grad.shape, [name for name in seen if name.startswith("qact")]

    seen = []
    cpp, python = by_both(monkeypatch, call)
    assert cpp == python
    assert cpp[2] == ["qact_python.layer_forward.default", "qact_python.layer_backward.default",
                      "qact_python.layer_forward.default"]


@needs_both
def test_the_same_step_of_a_checkpointed_network(monkeypatch):
    def call():
        from qact import QuantileActivation2d
        model = nn.Sequential(nn.Conv2d(2, 3, 3), QuantileActivation2d(3))
        x = torch.randn(8, 2, 6, 6, requires_grad=True)
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True).square().sum().backward()
        return [x.grad, *(p.grad for p in model.parameters()), *model.buffers()]

    cpp, python = by_both(monkeypatch, call)
    assert all(torch.equal(a, b) for a, b in zip(cpp, python))
