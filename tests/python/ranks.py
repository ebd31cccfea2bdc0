"""Runs a function on several processes, connected by Gloo over localhost."""

import datetime
import os
import pathlib
import socket
import tempfile
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LIMIT = datetime.timedelta(seconds=120)


def _enter(rank, ranks, port, folder, function, arguments):
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, ranks, rank == 0, timeout=LIMIT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=LIMIT)
    try:
        result = function(rank, ranks, *arguments)
    except Exception:  # told to the test, whatever it is
        result = "error: " + traceback.format_exc()
    torch.save(result, pathlib.Path(folder) / str(rank))
    dist.barrier()
    # Without torch's own end: DistributedDataParallel's waits, with Python's lock, for a thread that
    # may need it.
    os._exit(0)


def run(function, ranks, *arguments):
    """function(rank, ranks, *arguments) on every rank; what each returns, in rank order."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_enter, args=(rank, ranks, port, folder, function, arguments))
            for rank in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(LIMIT.total_seconds())
            process.kill()
        results = [torch.load(pathlib.Path(folder) / str(rank)) for rank in range(ranks)]
    for rank, result in enumerate(results):
        assert not (isinstance(result, str) and result.startswith("error: ")), f"{rank}: {result}"
    return results
