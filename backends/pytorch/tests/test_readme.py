"""The example of the README runs unchanged."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_first_model_is_made_and_served(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)

    exec(compile("\n".join(blocks), "README.md", "exec"), {})

    assert capsys.readouterr().out.splitlines()[-1] == "['OUTPUT__0'] (3, 3)"
