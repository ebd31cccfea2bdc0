"""The example, a few steps of it."""

import subprocess
import sys

from conftest import ROOT


def test_it_runs(tmp_path):
    found = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "adapt_resnet.py", "--steps", "4",
         "--test-images", "250"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "'layer1.relu_qact'" in found
    assert len([line for line in found.splitlines() if line.startswith(("ReLU,", "QAct,"))]) == 4
    assert (tmp_path / "adapt.png").exists() or "no picture" in found
