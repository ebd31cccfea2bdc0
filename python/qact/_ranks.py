"""What is reduced over the processes of a group, called ranks."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._in_blend import Batch
from .functional import context_build


class Ranks(NamedTuple):
    group: Optional[Any]
    rank: int
    size: int


def ranks_of(group: Optional[Any]) -> Ranks:
    """Those of a group, None: all; without torch.distributed, this process alone."""
    if not (dist.is_available() and dist.is_initialized()):
        return Ranks(None, 0, 1)
    group = dist.group.WORLD if group is None else group
    return Ranks(group, dist.get_rank(group), dist.get_world_size(group))


@contextlib.contextmanager
def reducing(ranks: Ranks, sums: Optional[Tensor] = None,
             maxima: Optional[Tensor] = None) -> Iterator[None]:
    """In place, both under way together while the body runs. An error in the body waits for them,
    too: other ranks are still adding up these tensors."""
    with contextlib.ExitStack() as under_way:
        for numbers, by in ((maxima, dist.ReduceOp.MAX), (sums, dist.ReduceOp.SUM)):
            if ranks.size > 1 and numbers is not None and numbers.numel() > 0:
                work = dist.all_reduce(numbers, by, group=ranks.group, async_op=True)
                under_way.callback(work.wait)
        yield


def reduce(ranks: Ranks, sums: Optional[Tensor] = None, maxima: Optional[Tensor] = None) -> None:
    """In place; both are under way together."""
    with reducing(ranks, sums, maxima):
        pass


class _Sum(torch.autograd.Function):
    """Over ranks; the gradient is that of the sum of their losses."""

    @staticmethod
    def forward(ctx, own, ranks):
        ctx.ranks = ranks
        total = own.clone()
        reduce(ranks, total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        total = grad.clone(memory_format=torch.contiguous_format)
        reduce(ctx.ranks, total)
        return total, None


class BatchOfRanks(Batch):
    """That of all ranks, of which one may have no images. Sums are in double, in an order that
    depends on the ranks. Each of them decides from its own values which of these tie."""

    def __init__(self, x: Tensor, ranks: Ranks) -> None:
        self._ranks, self.empty = ranks, x.shape[0] == 0
        sizes = torch.tensor([x.shape[0], x.numel() // x.shape[1]], device=x.device)
        reduce(ranks, sizes)
        self.images, self.values = sizes.tolist()

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        dims, wide = [0, *range(2, x.dim())], x.double()
        mean = _Sum.apply(wide.sum(dims, keepdim=True), self._ranks) / self.values
        squares = _Sum.apply((wide - mean).square().sum(dims, keepdim=True), self._ranks)
        var = squares / max(self.values - 1, 1)
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        return var.flatten().to(kind), mean.flatten().to(kind)

    def context(self, x: Tensor, scale: Optional[Tensor], shift: Optional[Tensor]) -> Tensor:
        counts = (context_build(x, scale, shift) if not self.empty else
                  torch.zeros(x.shape[1], 256, dtype=torch.int64, device=x.device))
        reduce(self._ranks, counts)
        return counts
