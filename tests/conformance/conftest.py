"""Shared servers of the conformance suite, and what cannot pass yet."""

import pytest
from conformance.catalog import IDENTITY_ALL
from conformance.launcher import Launcher
from conformance.not_yet import reason


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config._launcher = Launcher(config)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--server") != "core":
        return
    for item in items:
        if item.path.parent.name == "conformance":
            why = reason(item.path.name, item.originalname)
            if why is not None:
                item.add_marker(pytest.mark.xfail(reason=why, strict=True))


def pytest_unconfigure(config):
    launcher = getattr(config, "_launcher", None)
    if launcher is not None:
        launcher.stop_all(wait=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in item.config._launcher.running():
            report.sections.append((f"log of {server.label}", server.log_tail()))


@pytest.fixture(scope="session")
def launcher(pytestconfig):
    return pytestconfig._launcher


@pytest.fixture(scope="module")
def launch(launcher):
    """Start servers that live as long as the test module."""
    started = []

    def start(models, *options, **kwargs):
        server = launcher.start(models, *options, **kwargs)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop(wait=False)


@pytest.fixture
def launch_once(launcher):
    """Start servers that live as long as one test."""
    started = []

    def start(models, *options, **kwargs):
        server = launcher.start(models, *options, **kwargs)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop(wait=False)


@pytest.fixture(scope="session")
def basic(launcher):
    """One server for everything that needs plain models and no options."""
    return launcher.start(
        [
            *IDENTITY_ALL,
            "add_sub",
            "add_sub_int32",
            "plain",
            "fixed_shape",
            "reshaped",
            "optional_inputs",
            "classifier",
            "faulty",
            "params_echo",
            "slow",
            "versioned_all",
        ]
    )


@pytest.fixture
def http(basic):
    return basic.http_client()


@pytest.fixture
def grpc(basic):
    return basic.grpc_client()
