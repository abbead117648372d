"""A server without JAX says how to install it."""

import subprocess
import sys

HIDDEN = """
import sys
from importlib import util
from pathlib import Path

real = util.find_spec
util.find_spec = lambda name, *more: None if name == "jax" else real(name, *more)
from backend_jax import backend
from backend_jax.static_check import check_version
from core.config import parse_text
from core.errors import CoreError

config = parse_text('name: "m"', "config.pbtxt")
for function in (backend.complete, check_version):
    try:
        function(config, Path("/none"), backend)
    except CoreError as error:
        print(error.message)
"""


def test_completion_and_check_name_the_extra():
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=False
    )

    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith("model 'm': jax is not installed; install it with: pip install ")
        assert "backend-jax[cpu]" in line
