"""A process host in another distribution, and the error without one."""

import pytest

import core
from core import plugins
from core.errors import CoreError, Kind

HOST = """
import core
from core.plugins import HostedBackend

seen = []

class Host:
    @core.hookimpl
    def core_server_stopping(self, server):
        seen.append(server)

    def isolate(self, backend):
        made = HostedBackend(instance=core.ModelInstance)
        made.name, made.isolated = backend.name, backend
        return made

    def from_folder(self, name, file):
        made = HostedBackend(instance=core.ModelInstance)
        made.name, made.file = name, file
        return made

host = Host()
"""
PROCESS = "[core.process_host]\nprocess = plug_host:host\n"
FOLDERS = "[core.process_host]\nmodel.plug = plug_host:host\n"


@pytest.fixture
def without_ours(monkeypatch):
    """As where backend-python is not installed."""
    monkeypatch.setenv("CORE_BLOCK", "backend-python")


@pytest.fixture
def other():
    found = core.Backend(instance=core.ModelInstance)
    found.name = "plug"
    return found


def test_a_model_of_another_backend_runs_in_the_configured_process_host(
    install, without_ours, other
):
    install("host-plug", PROCESS, {"plug_host": HOST})

    found = plugins.isolate(other)

    assert found.name == "plug" and found.isolated is other
    assert plugins.isolated_by(found) is other and plugins.isolated_by(other) is None


def test_the_file_in_a_folder_names_the_process_host_that_runs_it(install, tmp_path):
    install("host-plug", FOLDERS, {"plug_host": HOST})
    (tmp_path / "plug_folder").mkdir()
    (tmp_path / "plug_folder/model.plug").touch()

    found = plugins.backend("plug_folder", str(tmp_path))

    assert found.name == "plug_folder"
    assert plugins.file_of(found) == tmp_path / "plug_folder/model.plug"
    assert plugins.imported()["plug_folder"][1] is found


def test_whether_a_folder_is_a_backend_is_known_without_importing_a_process_host(install, tmp_path):
    install("host-plug", FOLDERS, {"plug_host": "1 / 0"})
    (tmp_path / "plug_folder").mkdir()
    assert not plugins.is_there("plug_folder", str(tmp_path))

    (tmp_path / "plug_folder/model.plug").touch()

    assert plugins.is_there("plug_folder", str(tmp_path))


def test_a_process_host_may_have_hooks(install, without_ours, other):
    install("host-plug", PROCESS, {"plug_host": HOST})

    plugins.isolate(other)
    plugins.isolate(other)
    plugins.ask("core_server_stopping", server="s")

    import plug_host

    assert plug_host.seen == ["s"]


def test_without_a_process_host_the_error_names_the_distribution_that_has_one(without_ours, other):
    assert not plugins.can_isolate()

    with pytest.raises(CoreError) as caught:
        plugins.isolate(other)

    assert caught.value.kind is Kind.INVALID
    assert caught.value.message == (
        "EXECUTION_MODE 'process' of a model of backend 'plug' needs a process host, and none is installed; "
        "one is in the distribution backend-python"
    )


def test_two_process_hosts_are_refused_naming_both(install, other):
    install("host-plug", PROCESS, {"plug_host": HOST})

    with pytest.raises(CoreError, match="process host 'process' comes from two distributions"):
        plugins.isolate(other)


def test_an_object_without_the_method_is_refused(install, without_ours, other):
    install("host-plug", PROCESS, {"plug_host": "host = 5"})

    with pytest.raises(CoreError) as caught:
        plugins.isolate(other)

    assert caught.value.message == (
        "process host 'process' of host-plug 1.0: 'plug_host:host' has no method isolate"
    )
