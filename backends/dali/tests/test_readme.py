"""The code of the README works: it makes the model, serves it and sends a request."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from core import plugins

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.skipif(
    "dali" not in plugins.available_backends(), reason="backend-dali is not installed"
)
def test_the_model_of_the_readme_answers(tmp_path):
    make, ask = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "pictures.py").write_text(f"{make}\n{ask}")

    done = subprocess.run(
        [sys.executable, "pictures.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
