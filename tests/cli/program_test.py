"""`qact` as any command line meets it: PROGRAM [unittest's arguments]."""
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = sys.argv.pop(1)


def run(*words, **settings):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300,
                          **settings)


def small_image():
    """A PNG of 2 x 2 grey pixels."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 2, 2, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0ab\0cd")) + chunk(b"IEND", b""))


class Program(unittest.TestCase):
    def test_a_misspelt_command_is_answered_with_the_one_meant(self):
        for words, expected in (
                (["trian", "--epochs", "3"],
                 "qact: there is no command 'qact trian', did you mean 'qact train'?\n"
                 "expected one of corrupt, data, eval, predict, report, toy, train; "
                 "`qact --help` says more\n"),
                (["data", "lst"],
                 "qact: there is no command 'qact data lst', did you mean 'qact data list'?\n"
                 "expected one of list, fetch, info, check; `qact data --help` says more\n"),
                (["runs/lenet"],
                 "qact: there is no command 'qact runs/lenet'\n"
                 "expected one of corrupt, data, eval, predict, report, toy, train; "
                 "`qact --help` says more\n")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", expected))

    def test_an_unknown_option_is_answered_with_the_one_meant(self):
        for words, expected in (
                (["corrupt", "--out", "x"],
                 "qact: there is no option '--out' of 'qact corrupt', did you mean '--output'?\n"
                 "`qact corrupt --help` says more\n"),
                (["corrupt", "--sheet", "x.png", "--seed=3"],
                 "qact: there is no option '--seed' of 'qact corrupt', did you mean "
                 "'--data-seed'?\n`qact corrupt --help` says more\n"),
                (["train", "--epohcs", "3"],
                 "qact: there is no option '--epohcs' of 'qact train', did you mean '--epochs'?\n"
                 "`qact train --help` says more\n"),
                (["data", "list", "-x"],
                 "qact: there is no option '-x' of 'qact data list'\n"
                 "`qact data list --help` says more\n")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", expected))

    def test_the_same_options_everywhere(self):
        """An option that several commands take is spelt alike and says the same of its values."""
        for option, commands in (
                ("-o,--output", ("train", "toy", "report", "corrupt")),
                ("--data-seed", ("eval", "predict", "corrupt")),
                ("--limit", ("eval", "corrupt")),
                ("--modes", ("eval", "predict")), ("--classifiers", ("eval", "predict")),
                ("--device", ("train", "eval", "predict")),
                ("--figures TEXT", ("toy", "report"))):
            for command in commands:
                self.assertIn(f"\n  {option} ", run(command, "--help").stdout, command)

    def test_unknown_names_are_wrong_use_and_missing_data_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "output"
            away = ["--data-dir", folder]
            for words in (["train", "-o", output], ["eval", "run"], ["corrupt", "-o", output]):
                done = run(*words, "--data", "mnits", *away)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("expected a dataset's name (mnist-small, mnist, ", done.stderr)
            for words in (["fetch", "mnist-small", "mnits"], ["fetch", "a/folder"],
                          ["info", "mnits"], ["check", "mnits"], ["check", "frost"]):
                done = run("data", *words, *away)
                self.assertEqual((done.returncode, done.stdout), (2, ""), words)
                self.assertIn("expected a dataset's name (mnist-small, mnist, ", done.stderr)
            for words, named in (
                    (["train", "-o", output, "--data", "mnist", *away], "data fetch mnist"),
                    (["train", "-o", output, "--data", "no/where"], "no/where"),
                    (["train", "-o", ""], "[file] cannot use '': "),
                    (["train", "-o", output, "--config", "nowhere.toml"], "nowhere.toml"),
                    (["train", "-o", output, "--config", folder], folder),
                    (["eval", "nowhere"], "nowhere"),
                    (["predict", "nowhere", "x.png"],
                     "[predict] expected a model's file or a run's folder, got nowhere, which"),
                    (["report", "nowhere"], "nowhere"),
                    (["corrupt", "-o", output, "--data", "mnist", *away], "data fetch mnist"),
                    (["corrupt", "-o", output, "--data", "nowhere.npy"], "nowhere.npy"),
                    (["corrupt", "-o", output, "--data", "nowhere.png"], "nowhere.png"),
                    (["corrupt", "--sheet", output, "--image", "2000"], "below 2000, got 2000"),
                    (["data", "check", "mnist", *away], "data fetch mnist")):
                done = run(*words)
                self.assertEqual(done.returncode, 1, (words, done.stderr))
                self.assertIn(named, done.stderr)
            self.assertFalse(output.exists())

    def test_corrupts_the_images_that_its_options_choose(self):
        with tempfile.TemporaryDirectory() as folder:
            def pixels(name, *words):
                output = pathlib.Path(folder) / name
                done = run("corrupt", "--corruptions", "shot_noise,tone", "--severities", "1,4",
                           "--output", output, *words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue((output / "1" / "tone.npy").exists())
                return (output / "4" / "shot_noise.npy").read_bytes()[128:]

            two = pixels("two", "--limit", "2")
            self.assertEqual(len(two), 2 * 28 * 28)
            self.assertEqual(two, pixels("again", "--limit", "2", "--data-seed", "0"))
            self.assertEqual(two[:28 * 28], pixels("one", "--limit", "1"))
            self.assertNotEqual(two, pixels("drawn", "--limit", "2", "--data-seed", "1"))
            self.assertNotEqual(two, pixels("train", "--limit", "2", "--split", "train"))

    def test_corrupt_refuses_options_that_would_change_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "output"
            to_set, to_sheet = ["-o", output], ["--sheet", output]
            for words, message in (
                    ([*to_set, "--labels", "labels.npy"],
                     "[corrupt] expected --labels with a .npy array of images, got mnist-small"),
                    ([*to_set, "--layout", "mnist-c", "--severities", "1"],
                     "[corrupt] expected no --severities with --layout mnist-c, whose corruptions "
                     "have one each"),
                    ([*to_set, "--image", "0"],
                     "[corrupt] expected --image with --sheet, whose image it chooses"),
                    ([*to_sheet, "--layout", "folders"],
                     "[corrupt] expected --layout with --output, whose files it is about"),
                    ([*to_sheet, "--shard", "0/1"],
                     "[corrupt] expected --shard with --output, whose files it is about")):
                done = run("corrupt", "--limit", "2", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(message, done.stderr)
            self.assertFalse(output.exists())

    def test_corrupts_the_same_whatever_the_order_of_its_lists(self):
        with tempfile.TemporaryDirectory() as folder:
            def array(name, severities):
                done = run("corrupt", "--corruptions", "shot_noise", "--severities", severities,
                           "--limit", "2", "--output", pathlib.Path(folder) / name)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                return (pathlib.Path(folder) / name / "shot_noise.npy").read_bytes()

            self.assertEqual(array("up", "1,2,3,4,5"), array("down", "5,4,3,2,1,1"))

    def test_says_its_version(self):
        done = run("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^qact \d+\.\d+\.\d+\n$")

    def test_no_command_is_answered_with_the_help(self):
        for words, usage in (([], "Usage: qact [OPTIONS] SUBCOMMAND"),
                             (["data"], "Usage: qact data [OPTIONS] SUBCOMMAND")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(usage, done.stderr)
            asked_for = run(*words, "--help")
            self.assertEqual((asked_for.returncode, asked_for.stderr), (0, ""))
            self.assertEqual(asked_for.stdout, done.stderr)

    def test_nobody_reads_the_output(self):
        """As in `qact data list | head -1`: the system ends the program, which says nothing."""
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write) as closed:
            done = subprocess.run([PROGRAM, "data", "list"], stdout=closed, stderr=subprocess.PIPE,
                                  timeout=300)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no device that is always full")
    def test_lost_help_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "qact: [help] expected to write to the standard output, could not: "
                             "No space left on device\n"))

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no device that is always full")
    def test_lost_output_names_its_reason_however_long_it_is(self):
        for words in (["train", "--help"], ["data", "list", "--json"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=300)
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"qact: [{words[0]}] expected to write to the standard output, "
                                 "could not: No space left on device\n"))

    def test_files_beyond_the_limit_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("corrupt", "--corruptions", "tone", "-o", folder, preexec_fn=lambda:
                       resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"[atomic_file] expected to write {folder}/tone.npy, got: File too large",
                          done.stderr)

    def test_a_custom_dataset_is_here(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in ("train", "test"):
                (pathlib.Path(folder) / part / "one").mkdir(parents=True)
                (pathlib.Path(folder) / part / "one" / "a.png").write_bytes(small_image())
            self.assertRegex(run("data", "info", folder + "/").stdout, r"(?m)^state +here$")

    def test_signals_give_the_status_that_shells_expect(self):
        """Of a command without a run to stop tidily; it waits until its output is read."""
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = subprocess.Popen([PROGRAM, "data", "list", "--json"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, pipesize=4096)
            process.stdout.read(1)
            process.send_signal(number)
            message = process.communicate(timeout=60)[1]
            self.assertEqual((process.returncode, message),
                             (status, b"qact: interrupted\n"))

    def test_out_of_memory_is_said_in_one_line(self):
        """An image to be resized to 65,536 x 65,536, of at most 6 GiB of addresses."""
        with tempfile.TemporaryDirectory() as folder:
            for part in ("train", "test"):
                (pathlib.Path(folder) / part / "one").mkdir(parents=True)
                (pathlib.Path(folder) / part / "one" / "a.png").write_bytes(small_image())
            limit = 6 << 30
            done = run("data", "check", folder + "/", "--resize", "65536", preexec_fn=lambda:
                       resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", "qact: [data] out of memory: the system has no more\n"))


if __name__ == "__main__":
    unittest.main()
