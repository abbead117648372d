"""The example of the README works unchanged, and its tables name every option."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()
PACKAGE = Path(__file__).parents[1] / "backend_image"


def test_the_model_of_the_readme_answers(tmp_path):
    source = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]

    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    shape, geometry = done.stdout.split(") ")
    assert shape == "(1, 3, 224, 224"
    expected = [640, 480, 341 / 640, 256 / 480, -58, -16]
    assert [round(float(each), 3) for each in re.findall(r"[-\d.]+", geometry)] == [
        round(each, 3) for each in expected
    ]


def test_every_option_is_in_the_tables():
    read = r"options\.(?:number|count|flag|choice|text|size|size_or_none|floats)\(\s*\"(\w+)\""
    options = {name for file in PACKAGE.glob("*.py") for name in re.findall(read, file.read_text())}

    assert len(options) > 25
    assert [name for name in sorted(options) if f"`{name}`" not in README] == []
