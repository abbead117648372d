"""A server without DALI says how to install it, and reads serialized pipelines all the same."""

import subprocess
import sys

HIDDEN = """
import sys
from importlib import util
from pathlib import Path

real = util.find_spec
util.find_spec = lambda name, *more: None if name.startswith("nvidia") else real(name, *more)
from backend_dali import backend
from core.config import parse_text
from core.errors import CoreError

config = parse_text('name: "m"', "config.pbtxt")
backend.complete(config, Path(sys.argv[1]), backend)
print([io.name for io in config.input])
model = backend.model()
model.name, model.config, model.path, model.backend = "m", config, Path(sys.argv[1]), backend
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
    assert completed == "['encoded']"
    assert error.startswith("model 'm': DALI is not installed; install it with: pip ")
    assert "backend-dali[cuda12]" in error
