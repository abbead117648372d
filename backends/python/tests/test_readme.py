"""The model of the README works unchanged."""

import re
from pathlib import Path

import numpy as np

README = (Path(__file__).parents[1] / "README.md").read_text()


async def test_the_model_of_the_readme_answers(serve):
    source = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    config = re.search(r'```\nbackend: "python"\n(.*?)```', README, re.DOTALL)[1]
    model = await serve(source, config=config)

    answer = await model.ask({"x": np.array([[1, 2]], np.float32)})

    assert answer.output("y").array.tolist() == [[2, 4]]
