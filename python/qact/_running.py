"""The quantiles of a running context, computed once until it changes."""

import ctypes
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from ._library import ops


class _Kept(NamedTuple):
    key: tuple
    view: Any  # a ctypes array of as many bytes as the context has
    content: bytearray
    quantiles: Tensor


class RunningQuantiles:
    """Whether the context has changed is known by its bytes. torch's version counter does not tell:
    collectives, other processes, ``.data`` and pointers write without it. Other devices would have
    to be waited for: there they are computed in every call."""

    def __init__(self) -> None:
        self._kept: Optional[_Kept] = None

    def get(self, context: Tensor, first: int, levels: int, bound: float,
            positive_share: float) -> Tensor:
        """Of the channels from the first one on."""
        kept = self._kept
        # Two bytes-like objects are compared by memcmp, 1.5 us for 64 channels. torch.equal takes
        # four times as long, which a small layer would feel.
        if (kept is not None and context.is_cpu and context.is_contiguous()
                and (context.shape, context.dtype, first, levels, bound,
                     positive_share) == kept.key and type(context) is Tensor
                and kept.content == kept.view.from_address(context.data_ptr())):
            return kept.quantiles
        return self._anew(context, first, levels, bound, positive_share)

    def _anew(self, context: Tensor, first: int, levels: int, bound: float,
              positive_share: float) -> Tensor:
        if type(context) is not Tensor or not context.is_cpu or not context.is_contiguous():
            return ops.context_quantiles(context[first:], levels, bound, positive_share)
        view = ctypes.c_char * context.nbytes
        content = bytearray(view.from_address(context.data_ptr()))
        with torch.inference_mode(False):  # they may be saved for a backward pass later
            quantiles = ops.context_quantiles(context[first:], levels, bound, positive_share)
        if type(quantiles) is Tensor:  # and no fake one of a mode that looks on
            key = (context.shape, context.dtype, first, levels, bound, positive_share)
            self._kept = _Kept(key, view, content, quantiles)
        return quantiles

    # What is cached is no state: copies and pickles begin anew.
    def __deepcopy__(self, memo: dict) -> "RunningQuantiles":
        return RunningQuantiles()

    def __reduce__(self) -> tuple:
        return (RunningQuantiles, ())
