"""`qact eval` on several ranks and `qact corrupt` in shards, against one process."""

import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "train"))
from bands import folder_of_bands, write_bands  # noqa: E402
from ranks import Ranks, run  # noqa: E402

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())


class Shards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_of_bands(cls.addClassCleanup, 40)
        subprocess.run([PROGRAM, "train", "--output", str(cls.folder / "run"), "--data",
                        str(cls.folder / "data"), "--model", "mlp", "--epochs", "1", "--batch-size",
                        "20", "--lr", "0.01", "--threads", "1"], check=True, capture_output=True)

    def evaluation(self, name, *words):
        """A copy of the run, and the command."""
        if not (self.folder / name).exists():
            shutil.copytree(self.folder / "run", self.folder / name)
        return [PROGRAM, "eval", str(self.folder / name), "--corruptions", "fog,contrast,brightness",
                "--severities", "0,1,5", "--modes", "tracked,batch", "--stream", "single,mixed",
                "--batch-size", "10", *words]

    def rows(self, name):
        """The file, whose rows name the run's folder."""
        return (self.folder / name / "results.jsonl").read_text().replace(name, "NAME").splitlines()

    def one(self):
        if not (self.folder / "ranks-1").exists():
            done = subprocess.run(self.evaluation("ranks-1"), capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        return self.rows("ranks-1")

    def test_ranks_write_the_rows_of_one_process(self):
        for count in (2, 4):
            name = f"ranks-{count}"
            statuses, out, err = run(count, self.evaluation(name))
            self.assertEqual(statuses, [0] * count, err)
            self.assertEqual(out.count("rows made"), 1, out)
            self.assertEqual(self.rows(name), self.one())
        # A second call finds all of them.
        statuses, out, err = run(2, self.evaluation("ranks-2"))
        self.assertEqual((statuses, err), ([0, 0], ""))
        self.assertIn(" 0 rows made", "\n" + out.splitlines()[-1].rjust(40))

    def test_a_killed_rank_ends_all_and_the_rows_so_far_are_kept(self):
        for rank in (0, 1):
            name = f"killed-{rank}"
            with Ranks([self.evaluation(name, "--threads", "1")] * 2) as ranks:
                rows = self.folder / name / "results.jsonl"
                while not rows.exists() and ranks.processes[0].poll() is None:
                    time.sleep(0.01)
                time.sleep(0.3)
                ranks.processes[rank].send_signal(signal.SIGKILL)
                start = time.monotonic()
                statuses, _, err = ranks.end()
                self.assertLess(time.monotonic() - start, 10)
            if statuses[rank] == -signal.SIGKILL and statuses[1 - rank] != 0:
                self.assertIn(f"got the end of rank {rank}", err)
            statuses, _, err = run(2, self.evaluation(name))
            self.assertEqual(statuses, [0, 0], err)
            self.assertEqual(self.rows(name), self.one())

    def test_ranks_evaluate_alike_or_not_at_all(self):
        command = self.evaluation("mismatched", "--data-seed", "0", "--weights", "model")
        for option, got, other in (("batch-size", "10", "20"), ("severities", "0,1,5", "0,1"),
                                   ("data-seed", "0", "7"), ("weights", "model", "best")):
            at = command.index("--" + option) + 1
            with Ranks([command, [*command[:at], other, *command[at + 1:]]]) as ranks:
                statuses, _, err = ranks.end()
            self.assertEqual((statuses, err.count("qact: ")), ([1, 1], 1), err)
            self.assertIn(f"expected --{option} to be the same on all ranks, got {got} on rank 0 and "
                          f"{other} on rank 1", err)
        with Ranks([command, [*command, "--diagnostics"]]) as ranks:
            statuses, _, err = ranks.end()
        self.assertIn("expected --diagnostics to be the same on all ranks, got none on rank 0", err)
        # The same path in two places, with other images.
        for place in ("here", "there"):
            shutil.copytree(self.folder / "run", self.folder / place / "run")
            write_bands(self.folder / place / "data", "train", 150)
            write_bands(self.folder / place / "data", "t10k", 40 if place == "here" else 38)
        with Ranks([["env", "-C", str(self.folder / place), *command[:2], "run", *command[3:],
                     "--data", "./data"] for place in ("here", "there")]) as ranks:
            statuses, _, err = ranks.end()
        self.assertEqual(statuses, [1, 1], err)
        self.assertRegex(err, r"expected the digest of the images to be the same on all ranks, got")
        self.assertFalse((self.folder / "mismatched" / "results.jsonl").read_text())

    def files(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes()
                for path in sorted(folder.rglob("*")) if path.is_file()}

    def test_shards_write_the_files_of_one_process(self):
        for layout, severities in (("cifar-c", "1,2,3,4,5"), ("cifar-c", "1,3"),
                                   ("folders", "2,4")):
            folder = self.folder / f"{layout}{severities}"
            command = [PROGRAM, "corrupt", "--data", str(self.folder / "data"), "--corruptions",
                       "fog,contrast,brightness", "--severities", severities, "--layout", layout,
                       "--limit", "20", "--threads", "1", "--output"]
            subprocess.run([*command, str(folder / "one")], check=True, capture_output=True)
            shards = [subprocess.Popen([*command, str(folder / "shards"), "--shard", f"{i}/3"],
                                       stdout=subprocess.DEVNULL) for i in range(3)]
            self.assertEqual([shard.wait(60) for shard in shards], [0, 0, 0])
            self.assertEqual(self.files(folder / "shards"), self.files(folder / "one"))
            self.assertEqual(run(2, [*command, str(folder / "ranks")])[0], [0, 0])
            self.assertEqual(self.files(folder / "ranks"), self.files(folder / "one"))
        for shard in ("3/3", "-1/3", "1", "1/0", "a/b", "1/3x", ""):
            done = subprocess.run([*command, str(folder / "wrong"), "--shard", shard],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2 if shard else 0, shard)
            if shard:
                self.assertIn(f"expected --shard I/N with 0 <= I < N, got '{shard}'", done.stderr)

    def test_the_first_rank_does_what_one_process_does(self):
        statuses, out, _ = run(3, [PROGRAM, "data", "check", "mnist-small"])
        alone = subprocess.run([PROGRAM, "data", "check", "mnist-small"], capture_output=True,
                               text=True)
        self.assertEqual((statuses, out), ([0, 0, 0], alone.stdout))


if __name__ == "__main__":
    unittest.main()
