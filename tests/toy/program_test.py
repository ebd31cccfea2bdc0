"""`qact toy` as a user meets it: exit status, messages, files."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
QUICK = ["--seeds", "1", "--steps", "2", "--contexts", "5", "--width", "8", "--batch-size", "16"]


def toy(*words):
    return subprocess.run([PROGRAM, "toy", *words], capture_output=True, text=True, timeout=300)


class ToyProgram(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "deep" / "er"

    def files(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*"))

    def test_writes_rows_and_a_page(self):
        done = toy(*QUICK, "--output", self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.files(), ["report.html", "results.jsonl"])
        rows = [json.loads(line) for line in (self.folder / "results.jsonl").read_text().splitlines()]
        self.assertEqual({row["kind"] for row in rows}, {"run", "toy_score", "toy_points", "toy_map"})
        self.assertIn(f"report is {self.folder}/report.html", done.stdout)

    def test_table_is_aligned(self):
        lines = toy(*QUICK, "--output", self.folder).stdout.split("\n\n")[0].splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1, lines)

    def test_prints_json_alone(self):
        done = toy(*QUICK, "--experiment", "circle", "--json", "--output", self.folder)
        table = json.loads(done.stdout)
        self.assertEqual([row["network"] for row in table], ["relu", "batchnorm_relu", "qact"])
        self.assertAlmostEqual(table[0]["bayes"], 0.9952, 4)

    def test_writes_figures(self):
        toy(*QUICK, "--experiment", "monotone", "--figures", self.folder / "figures", "-o",
            self.folder)
        self.assertIn("figures/monotone_accuracy.vl.json", self.files())

    def test_repeats_by_its_own_command(self):
        toy(*QUICK, "--output", self.folder)
        before = (self.folder / "results.jsonl").read_text().splitlines()
        command = json.loads(before[0])["command"].split()
        self.assertEqual(toy(*command[2:]).returncode, 0)
        after = (self.folder / "results.jsonl").read_text().splitlines()
        self.assertEqual(before[1:], after[1:])

    def test_wrong_use_is_named(self):
        for words, named in (
            (["--experiment", "square"], "square"), (["--seeds", "0"], "seeds in 1..1000, got 0"),
            (["--steps", "-1"], "steps"), (["--steps", "many"], "many"), (["--width", "0"], "width"),
            (["--batch-size", "15"], "even batch_size, got 15"), (["--batch-size", "2"], "batch_size"),
            (["--contexts", "0"], "contexts"), (["--threads", "-1"], "threads"), (["--what"], "--what"),
        ):
            with self.subTest(words):
                done = toy(*words, "--output", self.folder)
                self.assertEqual(done.returncode, 2)
                self.assertIn(named, done.stderr)
                self.assertFalse(self.folder.exists())

    def test_a_folder_that_cannot_be_made_fails_at_once(self):
        self.folder.parent.mkdir()
        self.folder.write_text("a file")
        done = toy("--output", self.folder)  # the full training would take a minute
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.folder), done.stderr)

    def test_interrupted_it_leaves_nothing(self):
        process = subprocess.Popen([PROGRAM, "toy", "--steps", "1000000", "--output", self.folder],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not self.folder.exists():
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGINT)
        _, message = process.communicate(timeout=60)
        self.assertEqual((process.returncode, message),
                         (130, "qact: interrupted: nothing was written, and the same command "
                               "starts anew\n"))
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
