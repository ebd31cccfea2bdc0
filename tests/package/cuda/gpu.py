"""What the tests on a GPU share. Where there is none, they are skipped as they import this."""

import pytest
import torch

from qact._library import CUDA_MISSING

if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)
if CUDA_MISSING:
    pytest.skip(CUDA_MISSING, allow_module_level=True)


def on_gpu(tensors):
    return [None if t is None else t.cuda() for t in tensors]
