"""The code of the README works: it makes the model, serves it and sends a request."""

import re
from pathlib import Path

import pytest

from core import plugins

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.skipif(
    "tensorflow" not in plugins.available_backends(), reason="backend-tensorflow is not installed"
)
def test_the_model_of_the_readme_answers(monkeypatch, tmp_path):
    pytest.importorskip("tensorflow")
    make, ask = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)

    exec(make, {})
    exec(ask, {})
