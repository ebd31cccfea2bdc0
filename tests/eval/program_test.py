"""`qact eval` and `qact predict`, run as programs: PROGRAM [unittest's arguments]."""
import csv
import io
import json
import math
import pathlib
import random
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "train"))
from bands import SIDE, band, folder_of_bands, write_bands  # noqa: E402

PROGRAM = sys.argv.pop(1)


def png(pixels, side, depth=8):
    """Of 8 bits a pixel; in 16, these are the upper ones and the lower are alike."""
    def chunk(name, data):
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + bytes(v for v in pixels[y * side:(y + 1) * side]
                                  for _ in range(depth // 8)) for y in range(side))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">2I5B", side, side, depth, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def run(*words, **settings):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300,
                          **settings)


class EvalProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_of_bands(cls.addClassCleanup, 30)
        cls.run_folder = cls.folder / "run"
        done = run("train", "--output", cls.run_folder, "--data", cls.folder / "data", "--model",
                   "mlp", "--epochs", "3", "--batch-size", "20", "--lr", "0.01", "--threads", "1")
        assert done.returncode == 0, done.stderr

        cls.unfitted = cls.folder / "unfitted"
        done = run("train", "--output", cls.unfitted, "--data", cls.folder / "data", "--model",
                   "mlp", "--epochs", "1", "--batch-size", "20", "--fit-classifiers", "off")
        assert done.returncode == 0, done.stderr

    def copy_of_run(self, name):
        return shutil.copytree(self.run_folder, self.folder / name,
                               ignore=shutil.ignore_patterns("results.jsonl"))

    def rows(self, kind, folder=None):
        lines = ((folder or self.run_folder) / "results.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["kind"] == kind]

    def test_rows_a_summary_and_lines_in_a_pipe(self):
        words = ["eval", self.run_folder, "--corruptions", "brightness,tone", "--severities",
                 "0,5", "--batch-size", "15", "--classifiers", "head,logistic", "--diagnostics",
                 "--diagnostic-samples", "12"]
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr.splitlines()[0],
                         r"run  none 0  single  tracked  none  head  accuracy [\d.]+%$")
        self.assertEqual(len(done.stderr.splitlines()), 12)
        table = done.stdout.splitlines()
        self.assertRegex(table[0], r"^run +stream +mode +adapt +classifier +acc 0 .*drop 0-5 +mCE")
        self.assertRegex(table[2], r"single +tracked +none +logistic")
        again = run(*words, "--json")
        self.assertIn("0 rows made", again.stderr)
        summary = json.loads(again.stdout)
        self.assertEqual([s["mode"] for s in summary], ["tracked", "tracked", "batch", "batch"])
        self.assertEqual(set(summary[0]["accuracy"]), {"0", "5"})
        self.assertEqual(len(self.rows("scores")), 12)
        self.assertEqual(len(self.rows("reliability")), 24)
        self.assertIn("--corruptions brightness,tone", self.rows("scores")[0]["command"])
        for row in self.rows("tsne"):
            self.assertEqual((row["n"], len(row["x"]), len(row["y"])), (24, 24, 24))
            self.assertEqual(row["point_severity"], [0] * 12 + [5] * 12)
        for histogram in self.rows("histogram"):
            if histogram["what"] != "context":
                total = sum(histogram["counts"]) + histogram["below"] + histogram["above"]
                self.assertEqual(total, 12)

    def test_streams_and_adaptation(self):
        folder = self.copy_of_run("streams")
        words = ["eval", folder, "--adapt", "none,tent", "--stream", "single,mixed,correlated",
                 "--corruptions", "brightness,contrast", "--severities", "0,5", "--batch-size",
                 "15", "--classifiers", "head"]
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.splitlines()[0],
                         "qact: --adapt tent works with --modes batch, so not with tracked")
        self.assertRegex(done.stderr, r"streams  contrast 5  mixed  batch  tent  head  accuracy ")
        table = done.stdout.splitlines()
        self.assertRegex(table[9], r"correlated +batch +tent +head")
        self.assertEqual(len(self.rows("scores", folder)), 27)
        again = run(*words, "--json")
        self.assertIn("0 rows made", again.stderr)
        ways = [(s["stream"], s["mode"], s["adapt"]) for s in json.loads(again.stdout)]
        self.assertEqual(ways, [(stream, *way) for stream in ("single", "mixed", "correlated")
                                for way in (("tracked", "none"), ("batch", "none"),
                                            ("batch", "tent"))])
        command = self.rows("scores", folder)[0]["command"]
        self.assertIn("--adapt none,tent --stream single,mixed,correlated", command)
        page = folder / "page.html"
        for where, label in (("stream=mixed,adapt=tent", "TENT, batch statistics, mixed"),
                             ("stream=single", "TENT, batch statistics")):
            done = run("report", folder, "--no-sheet", "-o", page, "--where", where)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(label, page.read_text())
            self.assertEqual("mixed corruptions" in page.read_text(), "mixed" in where)

    def test_help_names_streams_and_methods(self):
        text = " ".join(run("eval", "--help").stdout.split())
        self.assertIn("Any of none, tent:", text)
        self.assertIn("Any of single, mixed, correlated:", text)

    def test_a_rows_command_spells_all_out_and_makes_no_other_row(self):
        folder = self.copy_of_run("spelt")
        words = ["eval", "--severities", "0", folder, "--limit", "9", "--data-dir", "some where"]
        self.assertEqual(run(*words).returncode, 0)
        command = self.rows("scores", folder)[0]["command"]
        for part in ("--data-dir 'some where'", "--modes tracked,batch", "--severities 0",
                     "--classifiers head,quantile,logistic ", "--corruptions gaussian_noise,",
                     ",jpeg_compression "):
            self.assertIn(part, command)
        for again in (shlex.split(command)[1:], words[:-2]):
            self.assertIn("\n0 rows made", run(*again).stdout)

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no device that is always full")
    def test_lost_output_is_told(self):
        image = self.folder / "one.png"
        image.write_bytes(png(band(random.Random(3), 1), SIDE))
        for words in (["predict", self.run_folder, image],
                      ["predict", self.run_folder, image, "--json"],
                      ["eval", self.copy_of_run("lost"), "--severities", "0", "--limit", "9"],
                      ["data", "list"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *map(str, words)], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=300)
            self.assertEqual(done.returncode, 1, words)
            self.assertEqual(done.stderr.splitlines()[-1],
                             f"qact: [{words[0]}] expected to write to the standard output, "
                             "could not: No space left on device")

    def start(self, *words):
        """A program that waits before its end until its lines are read: their pipe is small."""
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, pipesize=4096)
        self.addCleanup(process.stderr.close)
        self.assertRegex(process.stderr.readline(), "  head  accuracy ")
        return process

    def test_kills_and_signals_leave_what_the_same_command_goes_on_from(self):
        folder = self.copy_of_run("disturbed")
        results = folder / "results.jsonl"
        words = ["eval", folder, "--corruptions", "benchmark", "--batch-size", "15"]
        self.assertEqual(run(*words).returncode, 0)
        whole = results.read_bytes()
        results.unlink()

        process = self.start(*words)
        process.kill()
        self.assertEqual(process.wait(timeout=60), -signal.SIGKILL)
        killed = results.read_bytes()
        self.assertTrue(whole.startswith(killed))
        self.assertLess(len(killed), len(whole))

        process = self.start(*words)
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=60)[1].splitlines()[-1]
        self.assertEqual(process.returncode, 130)
        self.assertRegex(message, r"^qact: interrupted: \d+ rows are saved, and the same command")
        interrupted = results.read_bytes()
        self.assertTrue(whole.startswith(interrupted) and interrupted.startswith(killed))

        self.assertEqual(run(*words).returncode, 0)
        self.assertEqual(results.read_bytes(), whole)

    def test_wrong_use(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for words, code, message in (
                (["eval"], 2, "runs"),
                (["eval", self.run_folder, "--modes", "own"], 2, "got 'own'"),
                (["eval", self.run_folder, "--severities", "7"], 2, "got 7"),
                (["eval", self.run_folder, "--adapt", "Tent"], 2,
                 "--adapt: expected one of none, tent, got Tent"),
                (["eval", self.run_folder, "--stream", "mixed,sorted"], 2,
                 "--stream: expected one of single, mixed, correlated, got sorted"),
                (["eval", self.run_folder, "--adapt", "tent", "--modes", "tracked"], 2,
                 "[eval] expected --modes with batch for --adapt tent, got tracked"),
                (["eval", self.run_folder, "--adapt", "tent", "--batch-size", "1"], 1,
                 "[inference] expected batches of 2 or more images in mode batch for this network"),
                (["eval", self.run_folder, "--corruptions", "rain"], 2, "got rain"),
                (["eval", self.run_folder, "--threads=-3"], 2, "from 0 to 4096, got -3"),
                (["eval", self.folder / "nowhere"], 1, "nowhere, which is not there"),
                (["eval", empty], 1, "empty, which has no config.json"),
                (["eval", self.run_folder, "--classifiers", "none"], 2,
                 "--classifiers: expected one of head, quantile, logistic, got none"),
                (["eval", self.unfitted, "--classifiers", "quantile"], 1,
                 "expected one of the model's classifiers (head), got quantile"),
                (["eval", self.run_folder, "--data-seed=-1"], 2, "of 0 or more, of 64 bits, got -1"),
                (["eval", self.run_folder, "--device", "cuda:x"], 2,
                 "[eval] expected --device cpu, cuda or cuda:N, got 'cuda:x'"),
                (["eval", self.run_folder, "--device", "cuda:99"], 1,
                 "GPUs that torch sees, got cuda:99"),
                (["eval", self.run_folder, "--limit", "99999999999999999999"], 2,
                 "of 0 or more, got 99999999999999999999"),
                (["predict", self.run_folder], 2, "images"),
                (["predict", self.run_folder, "x.png", "--data-seed=-1"], 2,
                 "of 0 or more, of 64 bits, got -1"),
                (["predict", self.run_folder, "x.png", "--classifiers", "none"], 2,
                 "--classifiers: expected one of head, quantile, logistic, got none"),
                (["predict", self.unfitted, "x.png", "--classifiers", "quantile"], 1,
                 "qact: [inference] expected one of the model's classifiers (head), got quantile"),
                (["predict", self.run_folder, "x.png", "--modes", "own"], 2, "got 'own'"),
                (["predict", self.run_folder, "x.png", "--modes", "batch,prior"], 2,
                 "[predict] expected one mode, got batch, prior"),
                (["predict", self.run_folder, "x.png", "--classifiers", "head,logistic"], 2,
                 "[predict] expected one classifier, got head, logistic"),
                (["predict", self.run_folder, "x.png", "--device", "cuda:x"], 2,
                 "[predict] expected --device cpu, cuda or cuda:N, got 'cuda:x'"),
                (["predict", self.run_folder, "x.png", "--device", "cuda:99"], 1,
                 "GPUs that torch sees, got cuda:99"),
                (["predict", self.folder / "nowhere", "x.png"], 1, "nowhere"),
                (["predict", self.run_folder, "--top", "0", "x.png"], 2,
                 "--top: expected a whole number of 1 or more, got 0"),
                (["predict", self.run_folder, "x.png", "--threads=-3"], 2, "got -3"),
                (["predict", empty, "x.png"], 1, "empty, which has no model.safetensors"),
                (["predict", self.run_folder, empty], 1, f"images, got none in {empty}"),
                (["corrupt", "--sheet", "x.png", "--threads=-3"], 2, "got -3"),
                (["corrupt", "--sheet", "x.png", "--severities", "6"], 2, "from 1 to 5, got 6")):
            done = run(*words)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertIn(message, done.stdout + done.stderr)

    def test_a_mistyped_run_is_told_before_the_first_is_evaluated(self):
        folder = self.copy_of_run("first")
        done = run("eval", folder, self.folder / "mistyped")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mistyped, which is not there", done.stderr)
        self.assertFalse((folder / "results.jsonl").exists())

    def test_images_of_another_size_are_told_before_anything_is_written(self):
        folder = self.copy_of_run("other_size")
        data = self.folder / "larger"
        write_bands(data, "train", 9, 28)
        write_bands(data, "t10k", 9, 28)
        done = run("eval", folder, "--data", data)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "qact: [inference] expected images of 16x16 and 1 channels for the "
                             "network, got 28x28 and 1\n"))
        self.assertFalse((folder / "results.jsonl").exists())

    def test_weights_that_are_no_numbers(self):
        folder = self.copy_of_run("nan")
        weights = folder / "model.safetensors"
        data = bytearray(weights.read_bytes())
        length = struct.unpack("<Q", data[:8])[0]
        first = json.loads(data[8:8 + length])["fc1.weight"]["data_offsets"][0]
        data[8 + length + first:8 + length + first + 4] = struct.pack("<f", math.nan)
        weights.write_bytes(data)
        image = self.folder / "some.png"
        image.write_bytes(png(band(random.Random(3), 1), SIDE))
        for words in (["predict", folder, image], ["eval", folder, "--severities", "0"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, f"^qact: .safetensors. {weights}: tensor 'fc1.weight': "
                             r"expected finite numbers, got 1 of \d+ that are nan or infinite\n$")

    def test_out_of_memory_is_said_in_one_line(self):
        image = self.folder / "copied.png"
        image.write_bytes(png(band(random.Random(3), 1), SIDE))
        limit = 1 << 38
        done = run("predict", self.run_folder, image, "--modes", "augment", "--copies", 10**9,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^qact: .predict. out of memory: DefaultCPUAllocator: .* "
                         r"1024000001024 bytes.*; a smaller --batch-size needs less\n$")

    def test_awkward_images(self):
        images = self.folder / "awkward"
        images.mkdir()
        image = band(random.Random(9), 2)
        (images / "a plain.png").write_bytes(png(image, SIDE))
        (images / "b deep.png").write_bytes(png(image, SIDE, depth=16))
        (images / "c one.png").write_bytes(png(image[:1], 1))
        (images / "d empty.png").write_bytes(b"")
        (images / "e loop.png").symlink_to("e loop.png")
        (images / "f lost.jpg").symlink_to("nowhere.jpg")
        done = run("predict", self.run_folder, images)
        self.assertEqual(done.returncode, 1)
        table = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["file"] for row in table],
                         [str(images / name) for name in ("a plain.png", "b deep.png", "c one.png")])
        self.assertEqual([row["class"] for row in table[:2]], ["2", "2"])
        self.assertEqual(table[0]["probability"], table[1]["probability"])
        lines = done.stderr.splitlines()
        for line, part in zip(lines, ("d empty.png: [image] expected a PNG or JPEG file, got an "
                                      "empty one",
                                      "e loop.png: Too many levels of symbolic links",
                                      "f lost.jpg: No such file or directory",
                                      "expected images that can be read, got 3 of 6 that "
                                      "cannot"), strict=True):
            self.assertIn(part, line)

    def test_predictions(self):
        images = self.folder / "images, three"
        images.mkdir()
        noise = random.Random(9)
        for label in range(3):
            (images / f"{label}.png").write_bytes(png(band(noise, label), SIDE))
        done = run("predict", self.run_folder, images, "--top", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        table = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["file"] for row in table],
                         [str(images / f"{label}.png") for label in range(3)])
        self.assertEqual([row["class"] for row in table], ["0", "1", "2"])
        self.assertEqual([row["label"] for row in table], ["0", "1", "2"])
        self.assertGreater(float(table[0]["probability"]), float(table[0]["probability_2"]))

        (images / "broken.png").write_bytes(png(band(noise, 0), SIDE)[:60])
        done = run("predict", "--modes", "prior", self.run_folder / "model.safetensors", images,
                   "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("skipped", done.stderr)
        self.assertIn("broken.png", done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([(p["class"], p["label"]) for p in found], [("0", 0), ("1", 1), ("2", 2)])
        self.assertEqual(len(found[0]["top"]), 1)

        fitted = run("predict", "--classifiers", "logistic", self.run_folder, images / "0.png")
        self.assertRegex(fitted.stdout, r"0\.png.*,0,0,[\d.]+\n$")


if __name__ == "__main__":
    unittest.main()
