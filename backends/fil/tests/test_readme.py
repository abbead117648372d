"""The example of the README runs unchanged."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import xgboost
from sklearn import datasets

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_model_of_the_readme_answers(tmp_path):
    source = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]

    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    rows, _ = datasets.load_breast_cancer(return_X_y=True)
    booster = xgboost.Booster(model_file=tmp_path / "models" / "tumours" / "1" / "xgboost.json")
    expected = booster.inplace_predict(rows[:4].astype(np.float32))
    found = np.array(re.findall(r"[\d.]+", done.stdout), float).reshape(4, 2)
    np.testing.assert_allclose(found[:, 1], expected, atol=0.006)
