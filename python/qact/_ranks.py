"""What is reduced over the processes of a group, called ranks."""

from typing import Any, NamedTuple, Optional

import torch.distributed as dist
from torch import Tensor


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


def reduce(ranks: Ranks, sums: Optional[Tensor] = None, maxima: Optional[Tensor] = None) -> None:
    """In place; both are under way together."""
    if ranks.size == 1:
        return
    started = []
    for numbers, by in ((maxima, dist.ReduceOp.MAX), (sums, dist.ReduceOp.SUM)):
        if numbers is not None and numbers.numel() > 0:
            started.append(dist.all_reduce(numbers, by, group=ranks.group, async_op=True))
    for work in started:
        work.wait()
