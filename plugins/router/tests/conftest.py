"""Servers of core, a router before them, and servers that misbehave as a test says."""

import contextlib
from importlib.util import find_spec

import pytest
from routing.certificates import Certificates
from routing.requests import PATIENCE_S, Raw
from routing.running import Behaving, LoopThread, RunningRouter, Scripted
from routing.tokens import file_of_tokens

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401

# Compiled without libnghttp2, the router has no gRPC.
HAS_GRPC = find_spec("core_router.grpc.native.link") is not None
collect_ignore_glob = [] if HAS_GRPC else ["test_grpc*.py", "test_scan.py"]


@pytest.fixture(scope="session")
def thread():
    found = LoopThread()
    yield found
    found.close()


@pytest.fixture
def route(thread):
    """Make routers; they are closed after the test."""
    with contextlib.ExitStack() as opened:

        def make(servers, limits=None, **options):
            found = RunningRouter(thread, ",".join(servers), limits, **options)
            opened.callback(found.close)
            return found

        yield make


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def three():
    """Three servers of core. Only their gates may be changed."""
    found = [Behaving(number) for number in range(3)]
    yield found
    for each in found:
        each.gate.set()
        each.server.stop()


@pytest.fixture
def router(route, three):
    return route([each.address for each in three])


@pytest.fixture
def scripted(thread):
    """Make servers with scripts; they are closed after the test."""
    with contextlib.ExitStack() as opened:

        def make(respond, tls=None):
            found = Scripted(thread, respond, tls)
            opened.callback(found.close)
            return found

        yield make


@pytest.fixture
def copying(scripted, route):
    """Return a function that makes a router before two servers, with copies after a moment."""

    def make(first, second, **options):
        servers = scripted(first), scripted(second)
        router = route([each.name for each in servers], hedge_quantile=0.5, **options)
        for _ in range(100):
            router.router.hedging.answered("m", 0.03)
        return servers, router

    return make


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(file_of_tokens())
    return path


@pytest.fixture
def raw():
    with contextlib.ExitStack() as opened:

        def make(port):
            found = Raw(port)
            opened.callback(found.close)
            return found

        yield make


@pytest.fixture
def stream():
    """Make streams over gRPC; they are closed after the test."""
    from routing.grpc_servers import Stream

    with contextlib.ExitStack() as opened:

        def make(router, **more):
            found = Stream(router.grpc_port, timeout=PATIENCE_S, **more)
            opened.callback(found.close)
            return found

        yield make
