"""The blocks of docs/start/drop-in.md run as they are."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "start" / "drop-in.md"
MODEL = """
backend: "identity"
input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [-1, 8, 8] }]
output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [-1, 8, 8] }]
"""


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not part of an installed package")
def test_the_blocks_of_the_page_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "models" / "digits" / "1").mkdir(parents=True)
    (tmp_path / "models" / "digits" / "config.pbtxt").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"test_page\.py -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}

    for block in blocks:
        renamed = block.replace('"pixels"', '"INPUT0"').replace('"probabilities"', '"OUTPUT0"')
        exec(compile(renamed, PAGE.name, "exec"), names)

    printed = capsys.readouterr().out
    assert "(1, 8, 8)" in printed
    assert re.search(r"^\d{4,5}$", printed, re.MULTILINE)
