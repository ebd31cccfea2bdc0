"""A process group that is as slow as one of many GPUs would be: what is reduced together arrives as
late as a model says, and is noted with its bytes."""

import time

import torch.distributed as dist
from torch._C._distributed_c10d import _register_process_group


class DelayingGroup(dist.ProcessGroup):
    """Adds seconds(bytes) to the all-reduces of `group`: once to those that are started before any
    of them is waited for, which are one round. `rounds` has the bytes of each. Operators find the
    group under `name`."""

    def __init__(self, group, seconds, name):
        super().__init__(group.rank(), group.size())
        self.group, self.seconds, self.rounds = group, seconds, []
        self.under_way, self.started = 0, 0.0
        self._set_group_name(name)
        _register_process_group(name, self)

    def getBackendName(self):
        return "delaying"

    def allreduce(self, tensors, options):
        if self.under_way == 0:
            self.rounds.append(0)
            self.started = time.perf_counter()
        self.under_way += 1
        self.rounds[-1] += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return _Late(self, self.group.allreduce(tensors, options))


class _Late(dist._Work):
    def __init__(self, group, work):
        super().__init__()
        self.group, self.work = group, work

    def wait(self, timeout=None):
        self.work.wait()
        until = self.group.started + self.group.seconds(self.group.rounds[-1])
        time.sleep(max(0.0, until - time.perf_counter()))
        self.group.under_way -= 1
        return True
