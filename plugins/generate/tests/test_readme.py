"""The engine in the README is a working one."""

import re
from pathlib import Path

import numpy as np

pytest_plugins = ["core_testing.plugin"]

README = Path(__file__).parents[1] / "README.md"


def test_the_engine_of_the_readme_answers(model_repository, serve_repository):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names = {"__name__": "readme"}
    exec(code, names)
    model_repository.add("m", "")

    served = serve_repository(names["backend"])

    (found,) = served.stream({"text_input": np.array([b"> "], object)}, "m")
    assert found["text_output"].tolist() == [b"> Hello, world"]
