"""The example of the README works unchanged, and its table has the defaults."""

import re
import subprocess
import sys
from pathlib import Path

from backend_tracker.settings import DEFAULTS, PARAMETERS

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_model_of_the_readme_answers(tmp_path):
    source = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]

    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[-1, -1] [1, 1]"] + ["[0, 1] [2, 2]"] * 3


def test_the_table_names_every_parameter_with_its_defaults():
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \| (.*) \| (.*) \|$", README, re.M)
    named = {name: dict(zip(DEFAULTS, cells, strict=True)) for name, *cells in rows}

    for tracker, defaults in DEFAULTS.items():
        for name, value in defaults.items():
            if "_assoc" in name:
                continue
            shown = named[name][tracker].strip("`")
            expected = str(value).lower() if isinstance(value, bool) else f"{value:g}"
            assert shown == expected, (tracker, name)
    assert all(f"`{name}`" in README or name.endswith("_assoc") for name in PARAMETERS)
