"""The README's Python over the package, as written."""

import re
import subprocess
import sys

from conftest import ROOT


def test_examples_run(tmp_path):
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert examples
    for example in examples:
        subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)
