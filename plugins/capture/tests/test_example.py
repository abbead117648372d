"""The example finds the answer that differs."""

import subprocess
import sys
from pathlib import Path


def test_the_example():
    program = Path(__file__).parents[3] / "examples" / "capture.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "answers are equal              3" in done.stdout
    assert "output 'root' differs in 1 of 2 elements" in done.stdout
