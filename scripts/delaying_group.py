"""A process group that is as slow as one of many GPUs would be: every all-reduce sleeps as long as a
model says, and is noted with its bytes."""

import time

import torch.distributed as dist
from torch._C._distributed_c10d import _register_process_group


class DelayingGroup(dist.ProcessGroup):
    """Adds seconds(bytes) to the all-reduces of `group`. Operators find it under `name`."""

    def __init__(self, group, seconds, name):
        super().__init__(group.rank(), group.size())
        self.group, self.seconds, self.sizes = group, seconds, []
        self._set_group_name(name)
        _register_process_group(name, self)

    def getBackendName(self):
        return "delaying"

    def allreduce(self, tensors, options):
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        self.sizes.append(size)
        time.sleep(self.seconds(size))
        return self.group.allreduce(tensors, options)
