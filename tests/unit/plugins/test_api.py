"""Names of the package `core` that entry points of group `core.api` provide."""

import subprocess
import sys

import pytest

import core


@pytest.fixture(autouse=True)
def unresolved(monkeypatch):
    """core.Server is looked up again."""
    monkeypatch.delitem(vars(core), "Server", raising=False)


def test_core_imports_no_frontend_before_the_server_is_used():
    program = (
        "import sys, core; before = 'frontends' in sys.modules; "
        "print(before, core.Server.__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False frontends.in_process.server\n"


def test_without_its_entry_point_the_error_names_the_missing_part(monkeypatch):
    monkeypatch.setenv("CORE_BLOCK", "Server")

    with pytest.raises(
        AttributeError, match=r"'core' has no attribute 'Server'.*group 'core\.api'"
    ):
        core.Server  # noqa: B018
    assert not hasattr(core, "Server")


def test_a_name_that_two_distributions_provide_is_refused(install):
    install("other-server", "[core.api]\nServer = plug_api:Server\n", {"plug_api": "Server = int"})

    with pytest.raises(core.CoreError, match=r"'Server' comes from two distributions.*uninstall"):
        core.Server  # noqa: B018


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match=r"module 'core' has no attribute 'Sever'$"):
        core.Sever  # noqa: B018
