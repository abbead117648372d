"""A server started by systemd, or with another listener at $NOTIFY_SOCKET."""

import signal
import socket

import pytest


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(str(tmp_path / "notify"))
        end.settimeout(60)
        yield end


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_notified_when_models_serve_files_are_read_again_and_the_server_stops(
    launch, manager, workers
):
    server = launch(
        ["identity"],
        f"--workers={workers}",
        wait="live",
        environment={"NOTIFY_SOCKET": manager.getsockname()},
    )

    assert manager.recv(1000).startswith(b"READY=1\n")
    assert server.get("/v2/health/ready").status == 200

    server.process.send_signal(signal.SIGHUP)
    assert manager.recv(1000).startswith(b"RELOADING=1\n")
    assert manager.recv(1000).startswith(b"READY=1\n")

    server.process.terminate()
    assert manager.recv(1000).startswith(b"STOPPING=1\n")
    assert server.process.wait(60) == 0
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(1000)
