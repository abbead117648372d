"""The examples: a batch goes on where its first server has stopped, and files are one job."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


def output_of(name):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_of_a_batch():
    output = output_of("jobs.py")

    assert "done: {'total': 300, 'succeeded': 300, 'failed': 0}" in output
    assert "result 299: [17.29" in output


def test_the_example_of_files():
    output = output_of("job_of_files.py")

    assert "done: {'total': 6, 'succeeded': 5, 'failed': 1}" in output
    assert "wrong.jsonl: 0 succeeded" in output
    assert "squares.npy[2]: [3.0]" in output
