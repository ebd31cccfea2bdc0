"""Loads the operators, ``torch.ops.qact_python``, and what is known of them from C++."""

import pathlib

import torch

_FOLDER = pathlib.Path(__file__).resolve().parent


def _load(name: str) -> bool:
    path = _FOLDER / name
    if not path.exists():
        return False
    torch.ops.load_library(str(path))
    return True


if not _load("_ops.so"):
    raise ImportError(
        f"[qact] expected the operators' library at {_FOLDER / '_ops.so'}, found none: install the "
        "package (pip install .) and import it from elsewhere than its sources"
    )

#: Whether kernels for CUDA tensors are at hand. Their library needs a CUDA build of torch.
HAS_CUDA_KERNELS = torch.version.cuda is not None and _load("_ops_cuda.so")

ops = torch.ops.qact_python

#: Bytes that layer_forward keeps of a context for layer_backward, beside one for each value;
#: columns of stats; bins of a context.
KEPT_TABLE_BYTES, LAYER_STATS, CONTEXT_BINS = ops.constants()

#: The algorithms' numbers in the operators' schemas.
ALGORITHMS = {"auto": 0, "exact": 1, "binned": 2}
