"""Options of the command line that some of the tests read, and what tests of several folders ask."""

import os

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("conformance")
    group.addoption(
        "--server",
        choices=("core", "triton"),
        default="core",
        help="server that tests/conformance starts",
    )
    group.addoption(
        "--pytriton-site",
        default=None,
        help="site-packages that holds nvidia-pytriton, for --server=triton",
    )
    group.addoption(
        "--grpc-engine",
        choices=("auto", "native", "grpcio"),
        default="auto",
        help="what speaks HTTP/2 in the servers of --server=core",
    )
    group.addoption(
        "--http-lane",
        choices=("auto", "aiohttp"),
        default="auto",
        help="what answers requests for inference over HTTP in the servers of --server=core",
    )
    group.addoption(
        "--keep-logs", default=None, help="folder that receives the log of every server"
    )
    group.addoption(
        "--capture-traffic",
        default=None,
        help="folder that receives models, options and requests of every server (tests/replay)",
    )


@pytest.fixture(autouse=True, scope="session")
def no_platform():
    """Remove the variables of platforms; tests set their own."""
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith(("AIP_", "SAGEMAKER_"))]:
            patched.delenv(name)
        yield


@pytest.fixture
def collector(monkeypatch):
    """A collector of OpenTelemetry that listens while the test runs; the plugin for it is registered."""
    from collector import Collector  # other tests do not need its packages

    from core import plugins

    plugins.load_hooks()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    found = Collector().start()
    yield found
    found.close()
