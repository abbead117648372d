"""aiohttp starts without its client, and the client still works for its users."""

import subprocess
import sys

import pytest


def run(script):
    """Return the output of a new process."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


COUNTED = """
import ssl
read = []
for name in ("load_default_certs", "set_default_verify_paths"):
    original = getattr(ssl.SSLContext, name)
    def counted(self, *args, original=original, **kwargs):
        read.append(self)
        return original(self, *args, **kwargs)
    setattr(ssl.SSLContext, name, counted)
{body}
"""


def test_importing_the_server_reads_no_certificates():
    assert run(COUNTED.format(body="import frontends.http.aiohttp_web; print(len(read))")) == ["0"]


def test_importing_aiohttp_alone_does():
    count = run(COUNTED.format(body="import aiohttp; print(len(read))"))

    assert int(count[0]) > 0  # else there is nothing to postpone any more


@pytest.mark.parametrize("module", ["client", "connector", "client_reqrep", "tracing"])
def test_importing_the_server_leaves_the_client_out(module):
    script = f"import sys, frontends.http.aiohttp_web; print('aiohttp.{module}' in sys.modules)"

    assert run(script) == ["False"]


@pytest.mark.parametrize(
    "use",
    [
        "import aiohttp; aiohttp.ClientSession",
        "from aiohttp import ClientSession",
        "from aiohttp import *; ClientSession",
        "import aiohttp.client; aiohttp.client.ClientSession; aiohttp.ClientTimeout",
        "from aiohttp import connector; import aiohttp; aiohttp.TCPConnector",
        "from aiohttp.test_utils import TestClient; import aiohttp; aiohttp.ClientSession",
        "import aiohttp; assert 'ClientSession' in dir(aiohttp)",
    ],
)
def test_users_of_the_client_find_it_with_the_certificates_of_the_system(use):
    body = f"""
import frontends.http.aiohttp_web
{use}
print(len(read))
from aiohttp import connector
print(connector._SSL_CONTEXT_VERIFIED.verify_mode.name)
"""

    count, mode = run(COUNTED.format(body=body))

    assert int(count) > 0
    assert mode == "CERT_REQUIRED"


def test_the_package_then_has_all_names_of_a_plain_import():
    names = (
        "import aiohttp; aiohttp.ClientSession; print(*sorted(vars(aiohttp)), aiohttp.__version__)"
    )

    ours = run(f"import frontends.http.aiohttp_web; {names}")
    plain = run(f"import aiohttp.web; {names}")

    assert set(plain) - set(ours) == set()


def test_a_name_that_it_does_not_have_is_an_attribute_error():
    script = (
        "import frontends.http.aiohttp_web, aiohttp; print(getattr(aiohttp, 'no_such', 'none'))"
    )

    assert run(script) == ["none"]


def test_threads_that_ask_at_once_all_find_it():
    script = """
import frontends.http.aiohttp_web, threading, aiohttp
barrier = threading.Barrier(8)
found = []
def ask():
    barrier.wait()
    found.append(aiohttp.ClientSession.__name__)
threads = [threading.Thread(target=ask) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(*found)
"""

    assert run(script) == ["ClientSession"] * 8


def test_an_aiohttp_that_was_imported_before_is_unchanged():
    script = """
import aiohttp
before = aiohttp
import frontends.http.aiohttp_web, sys
print(sys.modules["aiohttp"] is before, type(before).__name__)
"""

    assert run(script) == ["True", "module"]
