"""A server without TensorFlow says how to install it, and checks SavedModels all the same."""

import subprocess
import sys

HIDDEN = """
import sys
from importlib import util
from pathlib import Path

real = util.find_spec
util.find_spec = lambda name, *more: None if name == "tensorflow" else real(name, *more)
from backend_tensorflow import backend
from core.config import parse_text
from core.errors import CoreError

folder = Path(sys.argv[1])
(folder / "model.graphdef").touch()
config = parse_text('name: "m"', "config.pbtxt")
model = backend.model()
model.name = "m"
for function in (lambda: backend.complete(config, folder, backend), model.load):
    try:
        function()
    except CoreError as error:
        print(error.message)
"""


def test_a_load_and_the_completion_of_a_graph_name_the_extra(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, tmp_path], capture_output=True, text=True, check=False
    )

    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith("model 'm': TensorFlow is not installed; install it with: pip ")
        assert "backend-tensorflow[cpu]" in line
