"""The example goes on where its first server has stopped."""

import subprocess
import sys
from pathlib import Path


def test_the_example():
    program = Path(__file__).parents[3] / "examples" / "jobs.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert "done: {'total': 300, 'succeeded': 300, 'failed': 0}" in done.stdout
    assert "result 299: [17.29" in done.stdout
