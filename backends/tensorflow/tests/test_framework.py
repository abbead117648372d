"""What TensorFlow prints at its import, and what the environment says of it."""

import os
import subprocess
import sys

LEVEL, ONEDNN = "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"
IMPORTED = f"""
import os
from backend_tensorflow import framework

print(os.environ.get("{LEVEL}"), os.environ.get("{ONEDNN}"))
"""


def imported(**variables):
    """Return what a process prints that imports TensorFlow with these variables: stdout, stderr."""
    others = {name: value for name, value in os.environ.items() if name not in (LEVEL, ONEDNN)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        capture_output=True,
        text=True,
        check=True,
        env={**others, **variables},
    )
    return done.stdout.strip(), done.stderr


def test_notes_about_the_processor_are_left_out():
    stdout, stderr = imported()

    assert stdout == "2 None"
    assert "cpu_feature_guard" not in stderr


def test_variables_of_the_user_stay():
    stdout, stderr = imported(**{LEVEL: "0", ONEDNN: "0"})

    assert stdout == "0 0"
    assert "oneDNN custom operations are on" not in stderr
