"""Loads the library that QACT_LIBRARY names, build/libqact_ops.so otherwise."""

import os
import pathlib

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("QACT_LIBRARY", ROOT / "build" / "libqact_ops.so")).resolve()

torch.ops.load_library(str(LIBRARY))


@pytest.fixture
def library():
    return LIBRARY


@pytest.fixture
def root():
    return ROOT


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
