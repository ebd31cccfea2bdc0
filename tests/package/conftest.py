"""Tests of the installed package. QACT_BUILD names the folder of the C++ build to compare with,
build/ otherwise; what is not built there is skipped, and pytest says so."""

import os
import pathlib

import pytest
import torch

import qact

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QACT_BUILD", ROOT / "build")).resolve()

assert ROOT not in pathlib.Path(qact.__file__).parents or BUILD in pathlib.Path(
    qact.__file__).parents, "the tests are of the installed package, not of its sources"


def pytest_configure(config):
    config.addinivalue_line("markers", "hardware: needs a GPU, for streams, graphs, compilers, speed")


def built(name):
    """A file of the C++ build."""
    path = BUILD / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def cpp():
    """The operators of the C++ library, in the same process."""
    torch.ops.load_library(str(built("libqact_ops.so")))
    return torch.ops.qact


@pytest.fixture(params=["C++", "Python"])
def recorded(request, monkeypatch):
    """Eager calls of the fused layer are recorded by a node in C++, or in Python."""
    if request.param == "Python":
        monkeypatch.setattr(qact._autograd, "_layer_cpp", None)
    elif qact._library.CPP_AUTOGRAD_MISSING:
        pytest.skip(qact._library.CPP_AUTOGRAD_MISSING)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
