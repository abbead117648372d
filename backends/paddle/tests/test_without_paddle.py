"""A server without Paddle says how to install it, and reads files all the same."""

import subprocess
import sys

import pytest
from backend_paddle.installed import import_paddle

from core.errors import CoreError

HIDDEN = """
import sys
from importlib import util
from pathlib import Path

real = util.find_spec
util.find_spec = lambda name, *more: None if name == "paddle" else real(name, *more)
from backend_paddle import backend
from core.config import parse_text
from core.errors import CoreError

config = parse_text('name: "m"', "config.pbtxt")
backend.complete(config, Path(sys.argv[1]), backend)
print([io.name for io in config.input])
model = backend.model()
model.name, model.config, model.path = "m", config, Path(sys.argv[1])
try:
    model.load()
except CoreError as error:
    print(error.message)
"""


def test_a_load_names_the_extra_and_the_configuration_is_completed(version):
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, version], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    completed, error = done.stdout.splitlines()
    assert completed == "['x']"
    assert error.startswith("model 'm': Paddle is not installed; install it with: pip ")
    assert "backend-paddle[cpu]" in error


def test_paddle_is_not_imported_beside_tensorflow_which_would_end_the_process(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", object())
    monkeypatch.delitem(sys.modules, "paddle", raising=False)

    with pytest.raises(CoreError, match="TensorFlow is loaded in it; give the model a process"):
        import_paddle("m")
