"""Python over the C++ library in the documents, as written; tests/package has the package's."""

import re
import subprocess
import sys


def test_examples_run(root, library, tmp_path):
    examples = re.findall(r"```python\n(.*?)```", (root / "docs" / "python.md").read_text(), re.DOTALL)
    assert examples
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "libqact_ops.so").symlink_to(library)
    for example in examples:
        subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)
