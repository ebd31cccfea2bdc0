"""`qact train` on several ranks against one process; and what happens when a rank ends.

KILLS=100 kills that many times instead of a few.
"""

import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "train"))
from bands import folder_of_bands, write_bands  # noqa: E402
from ranks import Ranks, free_port, run, torchrun  # noqa: E402

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "distributed"
KILLS = int(os.environ.get("KILLS", 3))


def weights(folder, name="model"):
    """The float32 tensors of a file of weights."""
    content = (folder / f"{name}.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for tensor, about in json.loads(content[8:start]).items():
        if about.get("dtype") == "F32":
            first, last = about["data_offsets"]
            values = content[start + first:start + last]
            tensors[tensor] = struct.unpack(f"<{len(values) // 4}f", values)
    return tensors


def distance(got, expected):
    """The norm of the difference over the norm, of all tensors together."""
    assert got.keys() == expected.keys()
    difference = size = 0
    for name, values in expected.items():
        difference += sum((a - b) ** 2 for a, b in zip(got[name], values))
        size += sum(b * b for b in values)
    return math.sqrt(difference / size)


class TrainOnRanks(unittest.TestCase):
    def setUp(self):
        self.folder = folder_of_bands(self.addCleanup, 3)
        # 6 steps an epoch
        self.quick = ["--data", str(self.folder / "data"), "--model", "mlp", "--epochs", "4",
                      "--batch-size", "20", "--lr", "0.01", "--threads", "1", "--workers", "1",
                      "--augment", "crop", "--fit-classifiers", "off"]
        # What one process computes from the whole batch, ranks compute from their shares.
        self.apart = ["--activation", "relu", "--norm", "group"]
        self.seen = set()  # processes, as ranks

    def command(self, name, *words):
        return [PROGRAM, "train", "--output", str(self.folder / name), *map(str, words)]

    def train(self, count, name, *words):
        """Without torchrun for one process."""
        if count > 1:
            return run(count, self.command(name, *words))
        done = subprocess.run(self.command(name, *words), capture_output=True, text=True,
                              timeout=60)
        return [done.returncode], done.stdout, done.stderr

    def rows(self, name):
        text = (self.folder / name / "train.jsonl").read_text()
        return [json.loads(row) for row in text.splitlines()]

    def files(self, name):
        return [(self.folder / name / f"{file}.safetensors").read_bytes()
                for file in ("model", "best", "state")]

    def test_ranks_go_where_one_process_goes(self):
        for losses, counts in ((["--loss", "cross-entropy"], (2, 3, 4)),
                               (["--loss", "triplet", "--classes-per-batch", "3"], (2,)),
                               (["--accumulate", "2", "--augment", "augmix", "--jsd", "12"], (2,))):
            one = "one" + losses[1]
            options = [*self.quick, *self.apart, *losses]
            self.assertEqual(self.train(1, one, *options)[0], [0])
            for count in counts:
                name = f"{count}{losses[1]}"
                statuses, out, err = self.train(count, name, *options)
                self.assertEqual((statuses, err), ([0] * count, ""))
                self.assertEqual(len(out.splitlines()), 5, out)  # each line once
                self.assertLess(distance(weights(self.folder / name), weights(self.folder / one)),
                                0.001)
                for got, expected in zip(self.rows(name), self.rows(one), strict=True):
                    self.assertEqual(got.pop("ranks"), count)
                    for field in ("loss", "val_loss", "val_accuracy"):
                        self.assertAlmostEqual(got[field], expected[field], delta=0.001)
                    self.assertEqual(got["step"], expected["step"])

    def test_a_rank_may_have_no_images_to_validate(self):
        for scope in (["batch", *self.apart], ["world", "--validation-mode", "batch"]):
            options = [*self.quick, "--validation", "0.02", "--epochs", "1", "--context-scope",
                       *scope]
            self.assertEqual(self.train(1, f"one{scope[0]}", *options)[0], [0])
            statuses, _, err = self.train(4, scope[0], *options)  # 3 images
            self.assertEqual((statuses, err), ([0] * 4, ""))
            self.assertAlmostEqual(self.rows(scope[0])[0]["val_loss"],
                                   self.rows(f"one{scope[0]}")[0]["val_loss"], delta=0.02)

    def test_contexts_span_the_ranks(self):
        options = [*self.quick, "--activation", "qact", "--validation-mode", "batch"]
        self.assertEqual(self.train(1, "one", *options)[0], [0])
        for count in (2, 4):
            name = f"on{count}"
            statuses, _, err = self.train(count, name, *options)
            self.assertEqual((statuses, err), ([0] * count, ""))
            self.assertLess(distance(weights(self.folder / name), weights(self.folder / "one")),
                            0.02)
            self.assertAlmostEqual(self.rows(name)[-1]["loss"], self.rows("one")[-1]["loss"],
                                   delta=0.02)

    def test_contexts_of_ranks_stay_apart(self):
        options = [*self.quick, "--activation", "qact", "--context-scope", "batch"]
        statuses, _, err = self.train(2, "two", *options)
        self.assertEqual((statuses, err), ([0, 0], ""))
        self.assertLess(self.rows("two")[-1]["loss"], self.rows("two")[0]["loss"])

    def test_wrong_use(self):
        plain = dict(os.environ, RANK="0", WORLD_SIZE="2")
        done = subprocess.run(self.command("run", *self.quick), capture_output=True, text=True,
                              env=plain, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("got none of LOCAL_RANK, MASTER_ADDR, MASTER_PORT", done.stderr)
        other = self.folder / "other"
        write_bands(other, "train", 147)
        write_bands(other, "t10k", 3)
        for differing, message in (
                (["--lr", "0.02"], "expected --lr to be the same on all ranks, got 0.01 on rank 0 "
                                   "and 0.02 on rank 1"),
                (["--data", self.folder / "other"], "expected --data to be the same on all ranks"),
                (["--save-every", "1"], "expected --save-every to be the same on all ranks")):
            with Ranks([self.command("run", *self.quick),
                        self.command("run", *self.quick, *differing)]) as ranks:
                statuses, _, err = ranks.end()
            self.assertEqual(statuses, [1, 1])
            self.assertIn(message, err)
        with Ranks([self.command("run", *self.quick), self.command("else", *self.quick)]) as ranks:
            statuses, _, err = ranks.end()
        self.assertEqual(statuses, [1, 1])
        self.assertIn("expected --output to be the same on all ranks", err)
        # The same path in two places, with other images.
        (self.folder / "elsewhere").mkdir()
        write_bands(self.folder / "elsewhere" / "data", "train", 147)
        write_bands(self.folder / "elsewhere" / "data", "t10k", 3)
        command = self.command("run", *self.quick, "--data", "./data")
        with Ranks([["env", "-C", str(place), *command]
                    for place in (self.folder, self.folder / "elsewhere")]) as ranks:
            statuses, _, err = ranks.end()
        self.assertEqual(statuses, [1, 1])
        self.assertRegex(err, r"expected the digest of ./data to be the same on all ranks, got "
                              r"[0-9a-f]{16} on rank 0 and [0-9a-f]{16} on rank 1")
        for words, message in (
                (["--batch-size", "3", "--context-scope", "batch"],
                 "a --batch-size of at least 4, 2 images for each of 2 ranks"),
                (["--device", "cuda:0"], "expected --device cuda under torchrun")):
            statuses, _, err = self.train(2, "run", *self.quick, *words)
            self.assertNotIn(0, statuses)
            self.assertIn(message, err)
        self.assertFalse((self.folder / "run").exists())

    def test_a_run_goes_on_with_another_number_of_ranks(self):
        many = [*self.quick, *self.apart, "--context-scope", "batch", "--epochs", "40"]
        with Ranks([self.command("run", *many)] * 2) as ranks:
            ranks.processes[0].stdout.readline()  # an epoch is done
            second = self.train(2, "run", *many, "--resume")
            self.assertEqual(second[0], [1, 1])
            self.assertIn("another process that is training in it", second[2])
            ranks.processes[1].terminate()  # one is enough
            statuses, _, err = ranks.end()
        self.assertEqual(statuses[1], 143)
        self.assertEqual(err.count("qact: "), 1, err)
        self.assertRegex(err, r"\[rank \d of 2\] interrupted after step \d+, which is saved")
        for count in (1, 4):
            name = f"on{count}"
            shutil.copytree(self.folder / "run", self.folder / name)
            statuses, _, err = self.train(count, name, "--resume")
            self.assertEqual(statuses, [0] * count, err)
            self.assertIn(f"with {count} ranks instead of 2", err)
        self.assertLess(distance(weights(self.folder / "on1"), weights(self.folder / "on4")), 0.02)

    def test_nan_ends_all_ranks_with_one_message(self):
        start = time.monotonic()
        statuses, _, err = self.train(2, "run", *self.quick, *self.apart, "--lr", "1e6",
                                      "--lr-scheduler", "constant")
        self.assertEqual(statuses, [1, 1])
        self.assertRegex(err, r"\[rank \d of 2\] \[train\] expected (a finite loss|finite weights)")
        self.assertLess(time.monotonic() - start, 30)

    def test_a_full_disk_ends_all_ranks_and_leaves_the_run_whole(self):
        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        many = [*self.quick, "--epochs", "20"]
        with Ranks([self.command("run", *many)] * 2, preexec_fn=limit(100_000)) as ranks:
            statuses, _, err = ranks.end()
        self.assertEqual((statuses, err.count("qact: ")), ([1, 1], 1), err)
        self.assertRegex(err, r"expected to write .*state.safetensors, got: File too large")
        with Ranks([self.command("run", *many)] * 2) as ranks:  # begins: nothing was left
            ranks.processes[0].stdout.readline()
            ranks.processes[1].terminate()
            statuses, _, err = ranks.end()
        self.assertIn("which is saved", err)
        before = self.files("run")
        resume = self.command("run", *many, "--resume")
        with Ranks([resume] * 2, preexec_fn=limit(100_000)) as ranks:
            statuses, _, err = ranks.end()
        self.assertEqual((statuses, err.count("qact: ")), ([1, 1], 1), err)
        self.assertEqual(self.files("run"), before)
        statuses, _, err = run(2, resume)
        self.assertEqual(statuses, [0, 0], err)

    def test_a_signal_ends_ranks_that_wait_for_another(self):
        many = [*self.quick, "--epochs", "100000", "--lr-scheduler", "constant"]
        with Ranks([self.command("run", *many)] * 3) as ranks:
            ranks.processes[0].stdout.readline()
            ranks.processes[2].send_signal(signal.SIGSTOP)
            ranks.processes[0].terminate()
            ranks.processes[1].send_signal(signal.SIGINT)
            start = time.monotonic()
            self.assertEqual([p.wait(30) for p in ranks.processes[:2]], [143, 130])
            self.assertLess(time.monotonic() - start, 15)
            said = [p.stderr.read() for p in ranks.processes[:2]]
        self.assertEqual(sum("got no answer from one" in text for text in said), 1, said)
        self.assertEqual(self.train(1, "run", "--resume", "--epochs", "1")[0], [2])  # its state is whole
        self.assertFalse([p for p in (self.folder / "run").iterdir() if "partial" in p.name])

    def test_torchrun_restarts_after_kills_at_any_moment(self):
        options = [*self.quick, "--save-every", "2", "--epochs", "8"]
        start = time.monotonic()
        done = subprocess.run(torchrun(2, self.command("whole", *options)), capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = time.monotonic() - start
        moments = random.Random(5)
        command = torchrun(2, self.command("killed", *options), "--max-restarts", "1000")
        killed = attempts = 0
        while killed < KILLS and attempts < 10 * KILLS:
            attempts += 1
            shutil.rmtree(self.folder / "killed", ignore_errors=True)
            with (self.folder / "said").open("w+") as said:
                with subprocess.Popen(command, stdout=said, stderr=said) as process:
                    try:
                        while killed < KILLS and self.kill_a_rank(process, moments, whole / 2):
                            killed += 1
                        process.wait(timeout=120)
                    finally:
                        process.kill()
                said.seek(0)
                text = said.read()
            self.assertEqual(process.returncode, 0, text)
            self.assertEqual(self.files("killed"), self.files("whole"), text)
        self.assertEqual(killed, KILLS)
        self.assertIn("torchrun has restarted all ranks: the run in", text)
        self.assertRegex(text, r"got the end of rank \d \(process \d+ on .*\), killed or out of memory")

    def test_two_nodes_restart(self):
        """Two agents of torchrun, as on two machines, by the example's command."""
        options = [*self.quick, "--epochs", "12", "--save-every", "2"]
        statuses, _, err = self.train(2, "whole", *options)
        self.assertEqual((statuses, err), ([0, 0], ""))
        # Options come from a file; its last of equal names is the command line's last.
        settings = dict(zip(options[::2], options[1::2]))
        recipe = self.folder / "recipe.toml"
        recipe.write_text("".join(f'{name[2:]} = "{value}"\n' for name, value in settings.items()))
        tools = pathlib.Path(sys.executable).parent  # where torchrun is
        environment = dict(os.environ, QACT=PROGRAM, RECIPE=str(recipe), PORT=str(free_port()),
                           CPUS="1", PATH=f"{tools}:{os.environ['PATH']}")
        command = ["bash", str(EXAMPLES / "two_nodes.sh"), "localhost", str(self.folder / "killed")]
        with (self.folder / "said").open("w+") as said:
            nodes = []
            try:
                nodes += [self.start_node(command, environment, said) for _ in range(2)]
                for victim in range(2):
                    ranks = self.ranks_that_train(nodes)
                    # The other agent hears of the new rendezvous while its own rank seems well. It
                    # starts that one again, and does not count it as a restart.
                    os.kill(ranks[1 - victim], signal.SIGSTOP)
                    os.kill(ranks[victim], signal.SIGKILL)
                    time.sleep(2)
                    os.kill(ranks[1 - victim], signal.SIGCONT)
                # The second machine is switched off and on.
                ranks = self.ranks_that_train(nodes)
                nodes[1].kill()
                os.kill(ranks[1], signal.SIGKILL)
                nodes[1].wait()
                nodes[1] = self.start_node(command, environment, said)
                statuses = [node.wait(timeout=60) for node in nodes]
            finally:
                for node in nodes:
                    node.kill()
            said.seek(0)
            text = said.read()
        self.assertEqual(statuses, [0, 0], text)
        self.assertEqual(text.count("torchrun has restarted all ranks: the run in"), 3, text)
        self.assertEqual(self.files("killed"), self.files("whole"), text)

    def start_node(self, command, environment, said):
        """Its agent, once one serves the rendezvous: the first one does."""
        agent = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as door:
                if door.connect_ex(("localhost", int(environment["PORT"]))) == 0:
                    return agent
            time.sleep(0.05)
        self.fail("expected torchrun to serve its rendezvous within 30 seconds")

    def ranks_that_train(self, agents):
        """The process of each agent's only rank, once all are new and have saved the run."""
        state = self.folder / "killed" / "state.safetensors"
        config = state.with_name("config.json")  # written after the first state: the run has begun
        seen, before = self.seen, state.stat().st_mtime_ns if state.exists() else 0
        end = time.monotonic() + 30
        while time.monotonic() < end:
            time.sleep(0.01)
            ranks = [pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
                     for agent in agents]
            saved = config.exists() and state.stat().st_mtime_ns > before
            if saved and all(len(own) == 1 and own[0] not in seen for own in ranks):
                self.seen = seen | {own[0] for own in ranks}
                return [int(own[0]) for own in ranks]
        self.fail("expected all ranks to train within 30 seconds")

    def kill_a_rank(self, agent, moments, longest):
        """Kills one at random, up to `longest` seconds after the start; false once all ended."""
        children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
        ranks = set()
        begun = self.folder / "killed" / "config.json"  # the first kill finds a run to go on with
        while agent.poll() is None and (len(ranks) < 2 or ranks & self.seen or not begun.exists()):
            ranks = set(children.read_text().split())
            time.sleep(0.01)
        self.seen |= ranks
        time.sleep(moments.uniform(0, longest))
        try:
            os.kill(int(moments.choice(sorted(ranks))), signal.SIGKILL)
        except (ProcessLookupError, IndexError):
            return False
        return True


if __name__ == "__main__":
    unittest.main()
