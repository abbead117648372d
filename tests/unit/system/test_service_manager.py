"""The messages to the service manager, at a socket of the test."""

import socket

import pytest

from core.system import service_manager


@pytest.fixture(params=["file", "abstract"])
def manager(request, tmp_path, monkeypatch):
    """A socket as systemd has it, named by $NOTIFY_SOCKET."""
    path = str(tmp_path / "notify")
    name = path if request.param == "file" else "\0" + path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(name)
        end.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        yield end


def test_ready_and_stopping_are_sent_in_the_form_of_sd_notify(manager):
    service_manager.ready()
    service_manager.stopping()

    assert manager.recv(1000).splitlines()[0] == b"READY=1"
    assert manager.recv(1000).splitlines()[0] == b"STOPPING=1"


def test_a_reload_begins_and_ends(manager):
    with service_manager.reloading():
        first, when = manager.recv(1000).split(b"\n")

    assert first == b"RELOADING=1"
    assert when.startswith(b"MONOTONIC_USEC=") and int(when.partition(b"=")[2]) > 0
    assert manager.recv(1000).startswith(b"READY=1\n")


def test_several_assignments_are_one_datagram(manager):
    service_manager.tell("A=1", "B=2")

    assert manager.recv(1000) == b"A=1\nB=2"


def test_no_message_is_sent_without_a_socket(monkeypatch, caplog):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)

    service_manager.ready()

    assert caplog.records == []


def test_a_missing_manager_is_only_a_warning(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))

    service_manager.ready()

    assert "nobody" in caplog.text and "READY=1" in caplog.text
