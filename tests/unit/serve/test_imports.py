"""A start imports what it needs; every module more costs each server time and memory."""

import subprocess
import sys

import pytest

LEFT_OUT = [
    *("aiohttp.client", "aiohttp.connector", "aiohttp.test_utils"),
    *("onnxruntime", "torch", "tensorflow", "multiprocessing", "numpy.ma", "numpy.testing"),
    *("sqlite3", "unittest", "xml.dom"),
]


@pytest.fixture(scope="module")
def imported():
    """What a fresh process has imported when its frontends are there, and no model."""
    script = """
import sys
from core import plugins, serve
for plugin in plugins.frontends().values():
    plugin.load()
plugins.available_backends()
plugins.load_hooks()
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_plain_start_imports_the_frontends(imported):
    assert {"frontends.http.frontend", "frontends.grpc.frontend", "aiohttp.web"} <= imported


@pytest.mark.parametrize("module", LEFT_OUT)
def test_a_plain_start_leaves_out(imported, module):
    assert module not in imported
