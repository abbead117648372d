"""aiohttp starts without reading certificates, and its client still trusts whom it should."""

import asyncio
import ssl
import subprocess
import sys

import pytest


def run(script):
    """What a fresh process prints."""
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
    assert run(COUNTED.format(body="import frontends.aiohttp_web; print(len(read))")) == ["0"]


def test_importing_aiohttp_alone_does():
    count = run(COUNTED.format(body="import aiohttp; print(len(read))"))

    assert int(count[0]) > 0  # else there is nothing to postpone any more


@pytest.mark.parametrize("wrap", ["wrap_bio", "wrap_socket"])
def test_a_context_of_the_client_reads_them_before_its_first_connection(wrap):
    script = COUNTED.format(
        body=f"""
import socket
import frontends.aiohttp_web
from aiohttp import connector
context = connector._SSL_CONTEXT_VERIFIED
for _ in range(2):
    if "{wrap}" == "wrap_bio":
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="a")
    else:
        one, other = socket.socketpair()
        context.wrap_socket(one, server_hostname="a", do_handshake_on_connect=False)
    print(len(read), context.verify_mode.name)
"""
    )

    first, mode, second, _ = run(script)

    assert int(first) > 0
    assert second == first
    assert mode == "CERT_REQUIRED"


def test_other_contexts_are_left_alone():
    import frontends.aiohttp_web  # noqa: F401

    context = ssl.create_default_context()

    assert "wrap_bio" not in vars(context)
    assert asyncio.iscoroutinefunction(context.wrap_bio) is False
