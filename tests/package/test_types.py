"""The types of the package's sources. more/test_types.py has a user's view of them."""

import subprocess
import sys

import pytest
from conftest import BUILD, ROOT


def test_the_sources():
    pytest.importorskip("mypy", reason="mypy is not installed: scripts/requirements.txt")
    found = subprocess.run(  # what is checked is said in pyproject.toml
        [sys.executable, "-m", "mypy", "--cache-dir", BUILD / "mypy_cache"], cwd=ROOT,
        capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
