"""The README's Python over the package, as written."""

import re
import subprocess
import sys

from conftest import ROOT


def test_examples_run(tmp_path):
    text = (ROOT / "README.md").read_text()
    examples = [example for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
                if "load_library" not in example]
    assert examples
    for example in examples:
        subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)
