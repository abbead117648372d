"""The example of the README runs unchanged."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_model_of_the_readme_answers(monkeypatch, tmp_path):
    make, ask = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    config = re.search(r'```\n(backend: "openvino"\n.*?)```', README, re.DOTALL)[1]
    folder = tmp_path / "models" / "wine"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    monkeypatch.chdir(tmp_path)

    exec(make, {})
    exec(ask, {})
