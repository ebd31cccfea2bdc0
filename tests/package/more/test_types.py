"""The package's types, as a user's type checker sees them."""

import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).parent / "user_program.py"


def test_a_user_program_runs(tmp_path):
    subprocess.run([sys.executable, PROGRAM], cwd=tmp_path, check=True)


def test_a_user_program_passes_mypy_strict(tmp_path):
    found = subprocess.run([sys.executable, "-m", "mypy", "--strict", PROGRAM], cwd=tmp_path,
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
