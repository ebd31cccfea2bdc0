"""`qact train` as a user meets it: options, messages, files, and kills at any moment.

KILLS=100 kills that many times instead of a few.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from bands import folder_of_bands, write_bands

PROGRAM = sys.argv.pop(1)
RECIPES = pathlib.Path(__file__).parents[2] / "recipes"
KILLS = int(os.environ.get("KILLS", 4))


class TrainProgram(unittest.TestCase):
    def setUp(self):
        self.folder = folder_of_bands(self.addCleanup, 3)
        self.quick = ["--data", str(self.folder / "data"), "--model", "mlp", "--epochs", "3",
                      "--batch-size", "20", "--lr", "0.01", "--threads", "1", "--workers", "1"]

    def command(self, run, *words):
        return [PROGRAM, "train", "--output", str(self.folder / run), *map(str, words)]

    def train(self, run, *words):
        return subprocess.run(self.command(run, *words), capture_output=True, text=True, timeout=600)

    def weights(self, run):
        return [(self.folder / run / f"{name}.safetensors").read_bytes()
                for name in ("model", "best", "state")]

    def config(self, run):
        return json.loads((self.folder / run / "config.json").read_text())

    def test_a_run_is_a_folder_and_a_line_per_epoch(self):
        done = self.train("run", *self.quick)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4, lines)
        self.assertRegex(lines[0], r"^epoch   1/3  loss [\d.]+  validation [\d.]+%  lr .* images/s")
        self.assertRegex(lines[3], r"^done after 3 epochs in .*; the run is .*/run$")
        self.assertEqual(sorted(p.name for p in (self.folder / "run").iterdir()),
                         [".lock", "best.safetensors", "config.json", "model.safetensors",
                          "state.safetensors", "train.jsonl"])
        rows = (self.folder / "run" / "train.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(row)["epoch"] for row in rows], [1, 2, 3])

    def test_flags_win_over_the_file_and_the_file_over_defaults(self):
        (self.folder / "own.toml").write_text(
            'epochs = 1\nlr = 0.5\nopt = "adam"\nnesterov = true\nlr-steps = [3, 5]\n'
            'validation-mode = "batch"\nfit-classifiers = "off"\n')
        self.assertEqual(self.train("run", "--config", self.folder / "own.toml", *self.quick[:4],
                                    "--lr", "0.25", "--batch-size", "20").returncode, 0)
        config = self.config("run")
        self.assertEqual(
            [config[name] for name in ("lr", "opt", "epochs", "nesterov", "lr-steps", "momentum",
                                       "validation-mode", "fit-classifiers")],
            [0.25, "adam", 1, True, [3, 5], 0.9, "batch", "off"])

    def test_the_recipes_are_accepted(self):
        for recipe in sorted(RECIPES.glob("*.toml")):
            done = self.train(recipe.stem, "--config", recipe, *self.quick[:4], "--epochs", "1",
                              "--batch-size", "20")
            self.assertEqual((done.returncode, done.stderr), (0, ""), recipe)
            self.assertEqual(self.config(recipe.stem)["split-seed"], 42)

    def test_wrong_use(self):
        (self.folder / "own.toml").write_text("learning = 1\n")
        (self.folder / "type.toml").write_text("epochs = 1.5\n")
        for name, text in (("two", "lr = [0.1, 0.2]\n"), ("again", "lr = 0.1\nepochs = 1\nlr = 0.2\n"),
                           ("joined", "lr-steps = [5]\nlr-steps = [10]\n")):
            (self.folder / f"{name}.toml").write_text(text)
        (self.folder / "section.toml").write_text("[train]\nepochs = 1\n")
        for words, message in (
                ([], "--output"),
                (["--output", "x", "--model", "nothing"], "--model one of densenet"),
                (["--output", "x", "--activation", "gelu"], "--activation one of qact"),
                (["-o", "x", "--data", "nothing"], "got nothing"),
                (["-o", "x", "--device", "gpu"],
                 "[train] expected --device cpu, cuda or cuda:N, got 'gpu'"),
                (["--output", "x", "--opt", "lion"], "--opt one of sgd, adam, got 'lion'"),
                (["--output", "x", "--seed", "-1"],
                 "--seed: expected a whole number of 0 or more, of 64 bits, got -1"),
                (["--output", "x", "--epochs", "9223372036854775808"],
                 "--epochs: expected a whole number of 64 bits, got 9223372036854775808"),
                (["--output", "x", "--batch-size", "010"],
                 "--batch-size: expected a whole number of 64 bits, got 010"),
                (["--output", "x", "--lr", "nan"], "--lr within [0.0,1000000.0], got nan"),
                (["--output", "x", "--lr", "abc"], "--lr: expected a number, got abc"),
                (["--output", "x", "--config", str(self.folder / "section.toml")],
                 "section.toml: expected the name of an option, got the section [train]"),
                (["--output", "x", "--epochs", "0"], "--epochs within [1,1099511627776], got 0"),
                (["--output", "x", "--config", str(self.folder / "two.toml"), "--lr", "0.1"],
                 "two.toml: expected one value of lr, got 2"),
                (["--output", "x", "--config", str(self.folder / "again.toml")],
                 "again.toml: expected each option once, got lr again"),
                (["--output", "x", "--config", str(self.folder / "joined.toml")],
                 "joined.toml: expected each option once, got lr-steps again"),
                (["--output", "x", "--config", str(self.folder / "type.toml")],
                 "--epochs: expected a whole number of 64 bits, got 1.5"),
                (["--output", "x", "--config", str(self.folder / "own.toml")], "learning"),
                (["--output", "x", "--sites", "1=nothing"], "expected an activation among"),
                (["--output", "x", "--early-stages", "9"], "expected 0 to 1 early stages, got 9"),
                (["--output", "x", "--model", "mlp", "--placement", "split"],
                 "expected a network with convolutions for the placement split"),
                (["--output", "x", "--checkpoint-activations"],
                 "expected a network of blocks to checkpoint activations")):
            done = subprocess.run([PROGRAM, "train", *words], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(message, done.stdout + done.stderr)
        done = self.train("run", *self.quick, "--batch-size", "1000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("at least 1000 training images", done.stderr)
        done = self.train("run", *self.quick, "--device", "cuda:99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("GPUs that torch sees, got cuda:99", done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_data_that_were_not_fetched_are_told(self):
        done = self.train("run", "--data", "mnist", "--data-dir", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("got nothing there: `qact data fetch mnist` gets it", done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_resume_needs_a_run(self):
        done = self.train("mistyped", "--resume")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a run to resume in", done.stderr)
        self.assertIn("got no such folder", done.stderr)
        self.assertFalse((self.folder / "mistyped").exists())

    def test_resume_keeps_the_configuration(self):
        self.assertEqual(self.train("run", *self.quick).returncode, 0)
        again = self.train("run", *self.quick)
        self.assertEqual(again.returncode, 1)
        self.assertIn("--resume", again.stderr)
        self.assertEqual(self.train("run", "--resume").returncode, 0)
        other = self.train("run", "--resume", "--lr", "0.3")
        self.assertEqual(other.returncode, 2, other)
        self.assertIn("--lr as the run began, 0.01, got 0.3", other.stdout + other.stderr)

        rows = self.folder / "run" / "train.jsonl"
        whole = rows.read_bytes()
        rows.write_bytes(whole + b'{"kind":"ep')
        cut = self.train("run", "--resume")
        self.assertEqual((cut.returncode, cut.stderr),
                         (0, f"qact: cut off line 4 of {rows}, which was not whole\n"))
        self.assertEqual(rows.read_bytes(), whole)
        write_bands(self.folder / "data", "train", 147)
        fewer = self.train("run", "--resume")
        self.assertEqual(fewer.returncode, 1)
        self.assertRegex(fewer.stderr, r"that the run began with, 150 images of 3 classes with the "
                                       r"digest [0-9a-f]{16}, got 147 images of 3 classes")

    def test_goes_on_after_kills_at_any_moment(self):
        start = time.monotonic()
        self.assertEqual(self.train("whole", *self.quick, "--save-every", "2").returncode, 0)
        whole = time.monotonic() - start
        moments = random.Random(5)
        killed = 0
        attempts = 0
        while killed < KILLS and attempts < 20 * KILLS:
            attempts += 1
            begun = (self.folder / "killed" / "config.json").exists()
            process = subprocess.Popen(
                self.command("killed", *self.quick, "--save-every", "2",
                             *(["--resume"] if begun else [])),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(moments.uniform(0, whole))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            message = process.communicate()[1]
            self.assertIn(process.returncode, (0, -signal.SIGKILL), message)
            if process.returncode == 0:  # finished: start over
                self.assertEqual(self.weights("killed"), self.weights("whole"))
                shutil.rmtree(self.folder / "killed")
        self.assertEqual(killed, KILLS)
        begun = (self.folder / "killed" / "config.json").exists()
        done = self.train("killed", *self.quick, "--save-every", "2",
                          *(["--resume"] if begun else []))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.weights("killed"), self.weights("whole"))
        self.assertEqual(len(list((self.folder / "killed").iterdir())), 6)

    def test_signals_save_and_say_so(self):
        many = [*self.quick, "--epochs", "100000", "--lr-scheduler", "constant"]
        for number in (signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen(self.command(number.name, *many), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            process.stdout.readline()  # an epoch is done
            second = self.train(number.name, *many, "--resume")
            self.assertEqual(second.returncode, 1)
            self.assertIn("alone, got another process that is training in it", second.stderr)
            process.send_signal(number)
            message = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 128 + number)
            self.assertRegex(message, r"interrupted after step \d+, which is saved: .*--resume")
            self.assertTrue((self.folder / number.name / "state.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
