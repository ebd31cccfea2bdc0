"""Loads the operators, ``torch.ops.qact_python``, and what is known of them from C++."""

import os
import pathlib
import re

import torch

_FOLDER = pathlib.Path(__file__).resolve().parent
_LEAST_TORCH = (2, 11)


def _check_torch(version: str) -> None:
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or tuple(int(part) for part in found.groups()) < _LEAST_TORCH:
        raise ImportError(f"[qact] expected torch {'.'.join(map(str, _LEAST_TORCH))} or later, got "
                          f"{version}: pip install 'torch>={'.'.join(map(str, _LEAST_TORCH))}'")


def _load_kernels() -> None:
    path = _FOLDER / "_ops.so"
    if not path.exists():
        raise ImportError(
            f"[qact] expected the operators' library at {path}, found none: install the package "
            "(pip install .) and import it from elsewhere than its sources")
    torch.ops.load_library(str(path))


def _load_cuda_kernels() -> str:
    """Returns why there are none; empty where there are."""
    path = _FOLDER / "_ops_cuda.so"
    if torch.version.cuda is None:
        return ("this torch was built without CUDA. Install one that has it, and a wheel of qact "
                "that was made by make wheel CUDA=1")
    if not path.exists():
        return ("this installation of qact has no CUDA kernels (_ops_cuda.so). Build the wheel with "
                "make wheel CUDA=1 where nvcc is")
    try:
        torch.ops.load_library(str(path))
    except OSError as error:  # of another system, or without its libraries
        return f"the CUDA kernels of this installation of qact do not load: {error}"
    return ""


def _load_cpp_autograd() -> str:
    """Returns why there is none; empty where there is."""
    if os.environ.get("QACT_CPP_AUTOGRAD") == "off":
        return "QACT_CPP_AUTOGRAD is off"
    version = torch.__version__.partition("+")[0]
    path = _FOLDER / f"_ops_autograd.torch-{version}.so"
    if not path.exists():
        return (f"this installation of qact has no {path.name}: it was built with another torch, or "
                "with one that is not tested")
    if not torch.compiled_with_cxx11_abi():
        return f"this torch has another C++ ABI than {path.name}"
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        return f"{path.name} does not load: {error}"
    return ""


_check_torch(torch.__version__)
_load_kernels()
#: Why tensors on CUDA are refused; empty where kernels for them are at hand.
CUDA_MISSING = _load_cuda_kernels()
#: Why eager calls of the fused layer are recorded in Python; empty where a node in C++ records them.
CPP_AUTOGRAD_MISSING = _load_cpp_autograd()

ops = torch.ops.qact_python

#: Bytes that layer_forward keeps of a context for layer_backward, beside one for each value; columns
#: of stats; bins of a context.
KEPT_TABLE_BYTES, LAYER_STATS, CONTEXT_BINS = ops.constants()

#: The algorithms' numbers in the operators' schemas.
ALGORITHMS = {"auto": 0, "exact": 1, "binned": 2}
