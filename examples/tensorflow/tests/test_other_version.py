"""Two versions of TensorFlow in one server: the second one in the environment of a Python model.

CORE_OTHER_TENSORFLOW   folder of a virtual environment with another TensorFlow
"""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import core

EXAMPLE = Path(__file__).parents[1] / "other_version" / "model.py"
OTHER = os.environ.get("CORE_OTHER_TENSORFLOW", "")
pytestmark = pytest.mark.skipif(
    not OTHER or find_spec("tensorflow") is None,
    reason="no CORE_OTHER_TENSORFLOW, or no TensorFlow",
)
CONFIG = f"""backend: "python"
parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{OTHER}" }} }}"""


def test_a_saved_model_runs_on_both_versions(tmp_path, caplog):
    import tensorflow as tf

    print_version = "import tensorflow; print(tensorflow.__version__)"
    command = [f"{OTHER}/bin/python", "-c", print_version]
    other = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert other != tf.__version__
    module = tf.Module()
    module.weights = tf.Variable([[1.0], [2.0]])
    module.function = tf.function(
        lambda x: {"y": x @ module.weights}, input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    new, old = (tmp_path / name / "1" / "model.savedmodel" for name in ("new", "old"))
    tf.saved_model.save(module, str(new), signatures=module.function)
    shutil.copytree(new, old)
    shutil.copy(EXAMPLE, old.parent)
    (tmp_path / "old" / "config.pbtxt").write_text(CONFIG)
    x = np.array([[1, 2], [3, 4]], np.float32)

    with caplog.at_level("INFO"), core.Server(model_repository=str(tmp_path)) as server:
        answers = [server.infer(name, {"x": x})["y"].tolist() for name in ("new", "old")]

    assert answers == [[[5], [11]]] * 2
    assert f"old runs on TensorFlow {other}" in caplog.text
