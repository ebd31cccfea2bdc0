"""`qact train` and `qact eval --device cuda` on two ranks that share a GPU, over Gloo, against one
process. Where there is no GPU it says so, and exits with 77: skipped."""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "train"))
from bands import folder_of_bands  # noqa: E402
from ranks import run  # noqa: E402

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
SKIPPED = 77
EVALUATION = ["--corruptions", "fog,contrast", "--severities", "0,1,5", "--modes", "tracked,batch",
              "--stream", "single,mixed", "--batch-size", "10"]


class RanksOnAGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_of_bands(cls.addClassCleanup, 40)
        done = subprocess.run(cls.training("one"), capture_output=True, text=True)
        if "of the 0 GPUs that torch sees" in done.stderr:
            raise unittest.SkipTest("no GPU here, or a program without CUDA")
        assert done.returncode == 0, done.stderr

    @classmethod
    def training(cls, name, *words):
        return [PROGRAM, "train", "--output", str(cls.folder / name), "--data",
                str(cls.folder / "data"), "--model", "mlp", "--activation", "qact", "--epochs", "4",
                "--batch-size", "20", "--lr", "0.01", "--threads", "1", "--workers", "1",
                "--validation-mode", "batch", "--device", "cuda", *words]

    def rows(self, name, file="train.jsonl"):
        text = (self.folder / name / file).read_text().replace(name, "NAME")
        return [json.loads(row) for row in text.splitlines()]

    def test_training(self):
        for scope in ("world", "batch"):
            name = f"two-{scope}"
            statuses, out, err = run(2, self.training(name, "--context-scope", scope))
            self.assertEqual((statuses, err), ([0, 0], ""))
            self.assertEqual(out.count("done after 4 epochs"), 1, out)
            rows = self.rows(name)
            self.assertEqual([row["ranks"] for row in rows], [2] * 4)
            self.assertTrue(all(math.isfinite(row["loss"]) for row in rows), rows)
            self.assertLess(rows[-1]["loss"], rows[0]["loss"])
            if scope == "world":  # the contexts of one process, too
                for got, expected in zip(rows, self.rows("one"), strict=True):
                    self.assertEqual(got["step"], expected["step"])
                    self.assertAlmostEqual(got["loss"], expected["loss"], delta=0.05)

    def test_a_run_goes_on(self):
        statuses, _, err = run(2, self.training("resumed", "--epochs", "2"))
        self.assertEqual((statuses, err), ([0, 0], ""))
        statuses, _, err = run(2, [*self.training("resumed", "--epochs", "4"), "--resume"])
        self.assertEqual(statuses, [0, 0], err)
        self.assertEqual(len(self.rows("resumed")), 4)

    def test_evaluation(self):
        found = {}
        for ranks in (1, 2):
            name = f"ranks-{ranks}"
            shutil.copytree(self.folder / "one", self.folder / name)
            command = [PROGRAM, "eval", str(self.folder / name), "--device", "cuda", *EVALUATION]
            if ranks == 1:
                subprocess.run(command, check=True, capture_output=True)
            else:
                statuses, out, err = run(ranks, command)
                self.assertEqual(statuses, [0] * ranks, err)
                self.assertEqual(out.count("rows made"), 1, out)
            found[ranks] = self.rows(name, "results.jsonl")
        self.assertGreater(len(found[1]), 1)
        for got, expected in zip(found[2], found[1], strict=True):
            self.assertEqual(got.keys(), expected.keys())
            for field, value in expected.items():
                if isinstance(value, float):  # the device's sums may have another order
                    self.assertAlmostEqual(got[field], value, delta=0.05, msg=field)
                else:
                    self.assertEqual(got[field], value, field)


def main():
    result = unittest.main(exit=False).result
    for _, why in result.skipped:
        print(f"skipped: {why}")
    return SKIPPED if result.skipped else not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
