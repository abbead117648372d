"""The port of a platform that runs containers: its own paths, beside the ports that every server has."""

import json
import socket

import pytest
from conformance.launcher import free_ports
from conformance.protocol import wait_until


class PlatformPort:
    """It may be opened a little after the others."""

    def __init__(self, server, port):
        self.server = server
        self.port = port
        assert wait_until(lambda: opened(port)), "nothing listens on the port of the platform"

    def request(self, method, path, body=None, headers=None):
        return self.server.request(method, path, body=body, headers=headers, port=self.port)

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, body=None, **kwargs):
        return self.request("POST", path, body=body, **kwargs)


def start(launch, kind, flag, models, *options, **kwargs):
    """A server with that platform's port, as a PlatformPort of that kind."""
    (port,) = free_ports(1)
    return kind(
        launch(models, f"--allow-{flag}=true", f"--{flag}-port={port}", *options, **kwargs), port
    )


def opened(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def hyphened(headers):
    """Headers that were named with an underscore for each hyphen."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def with_tail(mime, request, tail):
    """Return a body, and the Content-Type with the size of its JSON part."""
    head = json.dumps(request).encode()
    return head + tail, mime + str(len(head))


def skip_original(launcher, reason):
    """For what only newer versions of the original have, or what ends this one."""
    if launcher.kind == "triton":
        pytest.skip(reason)
