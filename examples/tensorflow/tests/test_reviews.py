"""The example examples/tensorflow/reviews.py trains, serves and asks a model."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "reviews.py"


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_reviews(tmp_path):
    done = subprocess.run(
        [sys.executable, PROGRAM, tmp_path], capture_output=True, text=True, check=False
    )

    assert done.stdout == "a great story: good\nI hated the actors: bad\n", done.stderr
    assert (tmp_path / "reviews" / "1" / "model.savedmodel" / "saved_model.pb").is_file()
