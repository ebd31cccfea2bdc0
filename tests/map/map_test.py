"""HACKING.md's map and the tree agree; and each check of that notices when they do not."""

import pathlib
import tempfile
import unittest

import checks
from tree import Tree

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The smallest tree in which every check has something to look at.
SMALL = {
    "HACKING.md": """# Map
| folder | what it holds | may include | read first |
|---|---|---|---|
| `qact/base/` | errors | | `fail.h` |
| `qact/data/` | one file per set, declared in `sets.h`; `cuda/` for the GPU | `base` | `sets.h` |
| `cli/` | the program | `data` | `main.cpp` |
| `qact/qact.h` | the umbrella | any | |
| `tests/` | tests | any | |

A new set is `data/NAME.cpp` and a line in `data/sets.{h,cpp}`; `make test` runs `base::fail
data/sets.h`.
[The map](HACKING.md)
""",
    "Makefile": "# make test\ntest:\n",
    "cli/main.cpp": '#include "qact/data/sets.h"\n',
    "qact/base/fail.h": "inline void fail() { throw 1; }\ntemplate <class To>\nTo narrow(int);\n",
    "qact/base/parallel.h": "int threads(int wanted = 0);\n",
    "qact/base/parallel.cpp": '#include "qact/base/parallel.h"\n',
    "qact/data/sets.h": "namespace qact::data {\nint mnist();\n}\n",
    "qact/data/sets.cpp": '#include "qact/data/sets.h"\n',
    "qact/data/mnist.cpp": '#include "qact/base/fail.h"\n#include "qact/data/sets.h"\n',
    "qact/qact.h": '#include "qact/base/fail.h"\n#include "qact/data/sets.h"\n',
    "qact/data/cuda/sets.cpp": '#include "qact/data/sets.h"\n',
    "tests/base/parallel_test.cpp": "TEST(Parallel, Counts) {}\n",
    "tests/data/sets_test.cpp": "TEST(Sets, Are) {}\n",
}


def messages(root):
    tree = Tree(root)
    return [message for check in checks.CHECKS for message in check(tree)]


class Map(unittest.TestCase):
    def test_agrees_with_the_tree(self):
        wrong = messages(ROOT)
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


class Broken(unittest.TestCase):
    """Small trees with one fault each."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        for file in SMALL:
            self.write(file, SMALL[file])

    def write(self, file, text):
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text)

    def edit(self, file, old, new):
        self.assertIn(old, SMALL[file])
        self.write(file, SMALL[file].replace(old, new))

    def assert_named(self, *expected):
        self.assertEqual(messages(self.root), list(expected))

    def test_the_small_tree_itself_is_good(self):
        self.assert_named()

    def test_an_include_against_the_arrows(self):
        self.write("qact/base/fail.h", '\n#include "qact/data/sets.h"\n')
        self.assert_named("qact/base/fail.h:2: expected no include from qact/data, which the map "
                          "does not list")

    def test_the_umbrella_included_below_it(self):
        self.write("qact/base/fail.h", '#include "qact/qact.h"\n')
        self.assert_named("qact/base/fail.h:1: expected no include from qact/qact.h, which the map "
                          "does not list")

    def test_an_arrow_that_no_include_needs(self):
        self.edit("HACKING.md", "| `data` | `main.cpp`", "| `data`, `base` | `main.cpp`")
        self.assert_named("HACKING.md:6: expected an include from base in cli, found none")

    def test_an_arrow_to_no_row(self):
        self.edit("HACKING.md", "| `data` | `main.cpp`", "| `data`, `nets` | `main.cpp`")
        self.assert_named("HACKING.md:6: expected the folder of a row, got nets",
                          "HACKING.md:6: expected a name of the sources, got nets")

    def test_an_include_that_hides_its_folder(self):
        self.edit("qact/data/mnist.cpp", "qact/base/fail.h", "../base/fail.h")
        self.assertIn("qact/data/mnist.cpp:1: expected a path from the root, got ../base/fail.h",
                      messages(self.root))

    def test_a_folder_missing_in_the_map(self):
        self.write("qact/nn/norm.h", "")
        self.write("tests/nn/norm_test.cpp", "")
        self.assert_named("HACKING.md:1: expected qact/nn in the map, found no row that names it")

    def test_a_folder_inside_another_missing_in_the_map(self):
        self.edit("HACKING.md", "; `cuda/` for the GPU", "")
        self.assert_named("HACKING.md:1: expected qact/data/cuda in the map, found no row that "
                          "names it")

    def test_a_row_without_a_folder(self):
        self.edit("HACKING.md", "| `tests/` |", "| `tests/`, `bench/` |")
        self.assert_named("HACKING.md:8: expected a folder or a file, got bench",
                          "HACKING.md:8: expected a file or a folder, got bench/")

    def test_a_cycle(self):
        self.edit("HACKING.md", "| errors | |", "| errors | `data` |")
        self.write("qact/base/fail.h", '#include "qact/data/sets.h"\n')
        self.assert_named("HACKING.md:4: expected no cycle, got qact/base -> qact/data -> "
                          "qact/base")

    def test_a_file_that_does_not_exist(self):
        for old, new, line, wrong in (
            ("| `fail.h`", "| `gone.h`", 4, "gone.h"),
            ("`data/NAME.cpp`", "`set/NAME.cpp`", 10, "set/NAME.cpp"),
            ("sets.{h,cpp}", "sets.{h,cu}", 10, "data/sets.cu"),
            ("(HACKING.md)", "(gone.md)", 12, "gone.md"),
        ):
            with self.subTest(new):
                self.edit("HACKING.md", old, new)
                self.assert_named(f"HACKING.md:{line}: expected a file or a folder, got {wrong}")

    def test_a_name_that_does_not_exist(self):
        self.edit("HACKING.md", "base::fail", "base::failed")
        self.assert_named("HACKING.md:10: expected a name of the sources, got failed")

    def test_a_source_that_no_header_declares(self):
        self.edit("qact/data/mnist.cpp", '#include "qact/data/sets.h"\n', "")
        self.assert_named("qact/data/mnist.cpp:1: expected an include of the header that declares "
                          "it, found none")

    def test_a_header_that_declares_no_source_alone(self):
        (self.root / "qact/data/mnist.cpp").unlink()
        self.assert_named("HACKING.md:5: expected an include from base in qact/data, found none",
                          "HACKING.md:5: expected sources that qact/data/sets.h alone declares, "
                          "found none")

    def test_a_header_whose_functions_no_source_defines(self):
        (self.root / "qact/base/parallel.cpp").unlink()
        self.assert_named("qact/base/parallel.h:1: expected a source of the same name, found none")

    def test_tests_in_a_file_of_another_name(self):
        self.write("tests/base/parallel.cpp", "\nTEST_F(Parallel, Counts) {}\n")
        self.assert_named("tests/base/parallel.cpp:2: expected tests in a file *_test.cpp")

    def test_tests_in_a_folder_like_none(self):
        self.write("tests/more/parallel_test.cpp", "TEST(Parallel, Counts) {}\n")
        self.assert_named("tests/more/parallel_test.cpp:1: expected tests in a folder like one of "
                          "qact/")

    def test_a_folder_without_tests(self):
        (self.root / "tests/data/sets_test.cpp").unlink()
        self.assert_named("HACKING.md:1: expected tests of qact/data in tests/data, found none")


if __name__ == "__main__":
    unittest.main()
