"""scripts/reproduce_cifar10 with a stand-in for `qact`; Python's standard library is enough."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "reproduce_cifar10"
# Each call leaves its words and the signals that it got; `report --json` prints what is there.
PROGRAM = """#!{python}
import json, os, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
if sys.argv[1] == "report":
    print((here / "means.json").read_text())
    sys.exit()
run = pathlib.Path(sys.argv[2] if sys.argv[1] == "eval" else sys.argv[3])
run.mkdir(parents=True, exist_ok=True)
(run / "config.json").write_text(json.dumps({{"data": "cifar10"}}))
(run / "results.jsonl").touch()
got = []
signal.signal(signal.SIGINT, lambda *_: got.append("SIGINT"))
(here / "begun").touch()
end = time.monotonic() + float(os.environ.get("SECONDS_A_STEP", 0))
while time.monotonic() < end and not got:
    time.sleep(0.02)
time.sleep(0.3 * bool(got))
(here / "ended").write_text(" ".join(got))
sys.exit(130 if got else 0)
"""
QUICK = ["--networks", "relu", "--seeds", "1", "--streams", "", "--severities", "0,5",
         "--diagnostics", "off", "--data-dir", "/nowhere"]


def entry(**setting):
    """Of `qact report --json`."""
    values = {"mean": {"0": 0.9, "5": 0.5}, "deviation": {"0": 0, "5": 0},
              "seeds": {"0": 1, "5": 1}}
    drop = {"from": 0, "to": 5, "mean": 0.4, "deviation": 0, "seeds": 1}
    return {"label": "", "kind": "benchmark", "corruptions": ["fog"] * 15, "seeds": [0],
            "setting": {"mode": "tracked", "adapt": "none", "stream": "single", "batch_size": 500,
                        "classifier": "head", "limit": 0, "frost": "official",
                        "training": {"lr": 0.1}, **setting},
            "metrics": {"accuracy": {**values, "drop": drop}, "map100": {**values, "drop": drop}}}


class Reproduce(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM.format(python=sys.executable))
        self.program.chmod(0o755)
        self.steps = self.folder / "runs" / "steps.jsonl"
        self.say([entry()])

    def say(self, entries):
        (self.folder / "means.json").write_text(json.dumps(entries))

    def command(self, *words):
        return [sys.executable, str(SCRIPT), "--program", str(self.program), "-o",
                str(self.folder / "runs"), *QUICK, *map(str, words)]

    def call(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=300)

    def test_a_signal_stops_the_steps_and_keeps_what_there_is(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for name in ("begun", "ended"):
                (self.folder / name).unlink(missing_ok=True)
            process = subprocess.Popen(self.command(), env=dict(os.environ, SECONDS_A_STEP="30"),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       start_new_session=True)
            while not (self.folder / "begun").exists():
                time.sleep(0.02)
            os.killpg(process.pid, number)  # as a terminal does
            out, err = process.communicate(timeout=300)
            self.assertEqual((process.returncode, err), (1, ""))
            self.assertEqual((self.folder / "ended").read_text(), "SIGINT")
            self.assertIn("relu-0: training: no time left to finish", out)
            self.assertIn("accuracy under corruptions, percent", out)
            self.assertIn("- training: relu-0: no time left to finish", out)

    def test_what_was_done_with_other_arguments_is_not_done(self):
        self.assertEqual(self.call("--limit", "50").returncode, 0)
        again = self.call("--limit", "50", "--threads", "7", "--minutes", "0")
        self.assertEqual(again.returncode, 0, again.stdout)  # nothing is left to do
        self.assertNotIn("- severities 0,5", again.stdout)
        all_images = self.call("--minutes", "0")
        self.assertEqual(all_images.returncode, 1)
        self.assertIn("- severities 0,5: relu-0: not begun", all_images.stdout)
        self.assertNotIn("- training", all_images.stdout)

    def test_a_piece_of_a_line_is_left_out_and_named(self):
        self.assertEqual(self.call().returncode, 0)
        whole = self.steps.read_text()
        self.steps.write_text(whole + whole.splitlines()[0][:20])
        tables = self.call("--tables")
        self.assertEqual(tables.returncode, 0, tables.stderr)
        self.assertIn(f"left out line {len(whole.splitlines()) + 1} of {self.steps}", tables.stderr)
        self.assertEqual(self.call().returncode, 0)
        rows = self.steps.read_text().splitlines()
        self.assertEqual(json.loads(rows[-1])["status"], "done")

    def test_an_archive_that_cannot_be_written_is_told(self):
        done = self.call("--archive", self.folder / "nowhere" / "x.tar.gz")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected --archive in a folder, got ", done.stderr)
        (self.folder / "taken.tar.gz").mkdir()
        done = self.call("--archive", self.folder / "taken.tar.gz")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"expected to write {self.folder / 'taken.tar.gz'}, got ", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        done = self.call("--archive", self.folder / "x.tar.gz")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater((self.folder / "x.tar.gz").stat().st_size, 0)

    def test_runs_of_a_custom_dataset_are_not_in_its_folder(self):
        done = subprocess.run([sys.executable, SCRIPT, "--dry-run", "--networks", "relu", "--data",
                               "/some/where/DIGITS/"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"train --output {ROOT / 'runs' / 'DIGITS' / 'relu-0'} --data "
                      "/some/where/DIGITS/ ", done.stdout)

    def test_no_line_of_a_table_is_lost(self):
        self.say([entry(), entry(frost="procedural"), entry(classifier="logistic"),
                  entry(mode="batch", limit=50)])
        self.assertEqual(self.call().returncode, 0)
        accuracy, of_map = self.call("--tables").stdout.split("map100 under corruptions")
        self.assertIn("| relu (frost official) | tracked* | head | all | 1 | 90.00 |", accuracy)
        self.assertIn("| relu (frost procedural) | tracked* | head | all | 1 | 90.00 |", accuracy)
        self.assertIn("| relu | tracked* | logistic | all | 1 | 90.00 |", accuracy)
        self.assertIn("| relu | batch | head | 50 | 1 | 90.00 |", accuracy)
        # The embedding of frost official is the same for both classifiers.
        self.assertEqual(of_map.count("| relu"), 3)

    def test_what_was_never_asked_for_is_named(self):
        self.assertEqual(self.call("--classifiers", "off").returncode, 0)
        out = self.call("--tables").stdout
        for line in ("not among --networks: qact split, ", "not among --seeds: relu-1, relu-2\n",
                     "not among --severities: 1, 2, 3, 4\n", "not among --streams: mixed, ",
                     "quantile and logistic classifiers, by --classifiers off: relu-0\n",
                     "diagnostics, by --diagnostics off: relu\n"):
            self.assertIn("\n- " + line, out)


if __name__ == "__main__":
    unittest.main()
