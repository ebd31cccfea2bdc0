"""Starts the program on several ranks: by torchrun, or with its environment alone, which is quicker."""

import os
import pathlib
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Ranks:
    """The processes of one run, by rank."""

    def __init__(self, commands, **options):
        port = str(free_port())
        self.processes = []
        for rank, command in enumerate(commands):
            environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                               WORLD_SIZE=str(len(commands)), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=port, OMP_NUM_THREADS="1")
            self.processes.append(subprocess.Popen(
                command, env=environment, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, **options))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def end(self, timeout=60):
        """The exit statuses, and what all ranks together printed: stdout, stderr."""
        out, err = [], []
        for process in self.processes:
            text = process.communicate(timeout=timeout)
            out.append(text[0])
            err.append(text[1])
        return [p.returncode for p in self.processes], "".join(out), "".join(err)


def run(count, command):
    with Ranks([command] * count) as ranks:
        return ranks.end()


def torchrun(count, command, *options):
    """The command line; its environment needs nothing of ours."""
    beside = pathlib.Path(sys.executable).parent / "torchrun"
    start = [str(beside)] if beside.exists() else [sys.executable, "-m", "torch.distributed.run"]
    return [*start, "--nproc-per-node", str(count), "--monitor-interval", "0.1",
            "--master-port", str(free_port()), *options, "--no-python", *command]
