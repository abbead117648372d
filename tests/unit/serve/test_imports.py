"""A start imports only needed modules; every other module costs each server time and memory."""

import subprocess
import sys

import pytest

LEFT_OUT = [
    *("aiohttp.client", "aiohttp.connector", "aiohttp.test_utils"),
    *("onnxruntime", "torch", "tensorflow", "multiprocessing", "numpy.ma", "numpy.testing"),
    *("sqlite3", "unittest", "xml.dom"),
]


START = """
import sys
from core import plugins, serve
for plugin in plugins.frontends().values():
    plugin.load()
plugins.available_backends()
plugins.load_hooks()
print(*sys.modules)
"""


def printed(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def imported():
    """Return the modules that a new process has imported with its frontends and without a model."""
    return printed(START)


def test_a_plain_start_imports_the_frontends(imported):
    assert {"frontends.http.frontend", "frontends.grpc.frontend", "aiohttp.web"} <= imported


@pytest.mark.parametrize("module", LEFT_OUT)
def test_a_plain_start_leaves_out(imported, module):
    assert module not in imported


def test_a_start_needs_no_unix_only_module():
    """Remove the modules that Windows lacks first: files are not locked then, and memory is not lent."""
    script = """
import sys, socket
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
del socket.CMSG_SPACE, socket.SCM_RIGHTS
import core
from frontends.shared.memory.region import sealed_region
from core.repository.private import PrivateDirectory
from frontends.shared.connection_limit import most_connections
folder = PrivateDirectory()
assert folder.path.is_dir()
folder.remove()
assert not folder.path.exists()
assert most_connections(0) > most_connections(7) == 7
try:
    sealed_region("r", 0, 4096)
except core.CoreError:
    pass
else:
    raise AssertionError("only Linux has memory without a name")
"""

    assert "frontends.memory.frontend" in printed(script + START)
