"""A pytest plugin: torch's CUDA devices are the emulated ones of device.cpp, whose library
QACT_EMULATED_CUDA names. Of `torch.cuda` there is what tests ask for that need no GPU of their own;
those that are marked `hardware` are skipped. scripts/test_emulated_cuda uses it."""

import ctypes
import os

# Torch looks for its CUDA library once, as it is imported.
ctypes.CDLL(os.environ["QACT_EMULATED_CUDA"], ctypes.RTLD_GLOBAL)

import pytest  # noqa: E402
import torch  # noqa: E402

torch.version.cuda = "emulated"
torch.cuda._lazy_init = lambda: None
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 2
torch.cuda.current_device = lambda: 0
torch.cuda.is_bf16_supported = lambda including_emulation=True: True
torch.cuda.synchronize = lambda device=None: torch.zeros((), device="cuda").item()

torch.cuda.get_rng_state = lambda device="cuda": torch.get_rng_state()
torch.cuda.set_rng_state = lambda state, device="cuda": torch.set_rng_state(state)


def _copy_where_it_is(kind):
    """Torch copies the storage of a tensor, which Python cannot make on this device."""
    elsewhere = kind.__deepcopy__

    def deepcopy(tensor, memo):
        if not tensor.is_cuda:
            return elsewhere(tensor, memo)
        if id(tensor) not in memo:
            copied = tensor.detach().clone()
            memo[id(tensor)] = kind(copied) if kind is torch.nn.Parameter else copied
            memo[id(tensor)].requires_grad_(tensor.requires_grad)
        return memo[id(tensor)]

    kind.__deepcopy__ = deepcopy


_copy_where_it_is(torch.nn.Parameter)
_copy_where_it_is(torch.Tensor)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("hardware"):
            item.add_marker(pytest.mark.skip(reason="needs a GPU: streams, graphs, compilers"))
