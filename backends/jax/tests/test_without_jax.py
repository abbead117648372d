"""A server without JAX says how to install it."""

import subprocess
import sys

HIDDEN = """
import sys
from importlib.abc import MetaPathFinder
from importlib import util

real = util.find_spec
util.find_spec = lambda name, *more: None if name == "jax" else real(name, *more)
try:
    import backend_jax
except ModuleNotFoundError as error:
    print(error)
"""


def test_the_error_names_the_extra():
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True
    )

    assert "jax is not installed; install it with: pip install" in done.stdout
    assert "backend-jax[cpu]" in done.stdout
