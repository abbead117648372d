"""The example of the README works unchanged, and its tables name every parameter and tensor."""

import re
import subprocess
import sys
from pathlib import Path

from backend_video.settings import LIMITS, OF_REQUESTS, PARAMETERS
from backend_video.tensors import INPUTS, outputs_of

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_model_of_the_readme_answers(tmp_path):
    source = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]

    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "0 0 (48, 64, 3)",
        "20 800000000 (48, 64, 3)",
        "40 1600000000 (48, 64, 3)",
    ]


def test_every_parameter_and_tensor_is_in_the_tables():
    first, second = README.split("The model alone sets these:")

    assert [each for each in OF_REQUESTS if f"`{each}`" not in first] == []
    rest = {*PARAMETERS} - {*OF_REQUESTS}
    assert [each for each in (*rest, *LIMITS) if f"\n| `{each}` |" not in second] == []
    for name in INPUTS:
        assert f"| input `{name}` |" in README
    for name in outputs_of("RGB"):
        assert f"| output `{name}` |" in README
