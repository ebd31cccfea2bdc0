"""What is done for CUDA without a GPU: loading its library, and what its kernels do not take."""

import pathlib
import shutil
import subprocess
import sys

import pytest
import torch
from calls import ops
from conftest import built

from qact import _cuda, _library


@pytest.mark.parametrize("version", ["2.11.0", "2.15.1+cu130", "2.11.0a0+git123", "3.0"])
def test_torch_from_2_11_on_is_taken(version):
    _library._check_torch(version)


@pytest.mark.parametrize("version", ["2.10.2", "1.13.1+cpu", "unknown"])
def test_an_older_torch_is_refused(version):
    with pytest.raises(ImportError, match=f"expected torch 2.11 or later, got {version[:4]}"):
        _library._check_torch(version)


def test_why_there_are_no_cuda_kernels(monkeypatch, tmp_path):
    monkeypatch.setattr(_library, "_FOLDER", tmp_path)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "built without CUDA" in _library._load_cuda_kernels()
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert "make wheel CUDA=1" in _library._load_cuda_kernels()
    (tmp_path / "_ops_cuda.so").write_text("no library")
    assert "do not load: " in _library._load_cuda_kernels()
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)
    assert _library._load_cuda_kernels() == ""


# In a process of its own. Where torch was built without CUDA, it says there that it was, and a stub
# stands for its library.
IMPORT = """
import ctypes, sys
import torch
if torch.version.cuda is None:
    ctypes.CDLL(sys.argv[1])
    torch.version.cuda = "13.0"
import qact
assert qact._library.CUDA_MISSING == "", qact._library.CUDA_MISSING
for name in ("layer_forward", "layer_backward", "layer_track", "activation_forward",
             "activation_kernel", "quantile_apply", "quantile_apply_backward", "context_build",
             "context_blend", "context_quantiles"):
    assert torch._C._dispatch_has_kernel_for_dispatch_key("qact_python::" + name, "CUDA"), name
    print(name)
layer = qact.QuantileActivation(3)
print(layer(torch.randn(8, 3, 4, 4)).shape)
"""


def test_the_package_with_the_cuda_library(tmp_path):
    library, stub = built("python/_ops_cuda.so"), built("python/stub/libtorch_cuda.so")
    shutil.copytree(pathlib.Path(_library.__file__).parent, tmp_path / "qact")
    place = tmp_path / "qact" / "_ops_cuda.so"
    place.unlink(missing_ok=True)  # of an installation that has one
    place.symlink_to(library)
    code = "import sys; sys.path.insert(0, sys.argv[2])" + IMPORT
    found = subprocess.run([sys.executable, "-c", code, str(stub), str(tmp_path)], text=True,
                           capture_output=True, timeout=300)
    assert found.returncode == 0, found.stderr
    assert "torch.Size([8, 3, 4, 4])" in found.stdout


@pytest.mark.parametrize("levels,quantised", [(100, True), (300, True), (100, False)])
def test_levels_that_are_no_byte_are_sorted(monkeypatch, levels, quantised):
    asked = []

    def kernel(x, levels, bound, share, bandwidth, algorithm, keep):
        asked.append(levels)
        return ops.activation_forward(x, levels, bound, share, bandwidth, algorithm, True, 0, 0,
                                      keep)

    monkeypatch.setattr(_cuda.ops, "activation_kernel", kernel, raising=False)
    x = torch.randn(50, 3)
    arguments = (levels, 100.0, 0.5, 0.5, 0, quantised, 0, 0, True)
    y, density = _cuda.activation_forward(x, *arguments)
    expected = ops.activation_forward(x, *arguments)
    torch.testing.assert_close(y, expected[0])
    torch.testing.assert_close(density, expected[1])
    assert asked == [min(levels, 255)]
    with pytest.raises(NotImplementedError, match="expected density_samples=0"):
        _cuda.activation_forward(x, *arguments[:6], 5, 0, True)
