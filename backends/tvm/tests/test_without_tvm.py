"""A server without TVM says how to install it, and reads files all the same."""

import subprocess
import sys

HIDDEN = """
import sys
from importlib import util
from pathlib import Path

real = util.find_spec
util.find_spec = lambda name, *more: None if name == "tvm" else real(name, *more)
from backend_tvm import backend
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
    assert error.startswith("model 'm': TVM is not installed; install it with: pip ")
    assert "backend-tvm[cpu]" in error
