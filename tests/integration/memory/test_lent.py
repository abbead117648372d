"""Memory whose descriptors are sent over a socket: which is accepted, its users and its lifetime."""

import array
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from core_client import SharedMemoryError, SharedMemoryPool
from core_client.registration import BySocket
from tritonclient.utils import InferenceServerException

from core.system.platform import PORTABLE

pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(PORTABLE, reason="only Linux has memory that can be sealed"),
]

ADD_SEALS, SEAL_SHRINK, SEAL_WRITE = 1033, 2, 8


def memory(byte_size=4096, seals=SEAL_SHRINK):
    file = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.truncate(file, byte_size)
    fcntl.fcntl(file, ADD_SEALS, seals)
    return file


@pytest.fixture
def connection(site):
    """A client that sends exact bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as found:
        found.settimeout(30)
        found.connect(site.socket)

        def ask(message, *files):
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            socket.send_fds(found, [data], files)
            for each in files:
                os.close(each)
            return json.loads(found.recv(4096))

        yield SimpleNamespace(raw=found, ask=ask)


@pytest.fixture
def files():
    """Return the number of open memory descriptors of this process, which is also the server."""

    def count():
        found = 0
        for each in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # closed meanwhile
                found += "memfd:test" in os.readlink(f"/proc/self/fd/{each}")
        return found

    return count


class TestRegister:
    def test_the_name_of_a_region_cannot_be_guessed(self, connection):
        first, second = (connection.ask({"register": 4096}, memory())["name"] for _ in range(2))

        assert len(first) == len("lent-") + 32 and first != second

    def test_the_audit_does_not_name_it(self, connection, caplog):
        """A client that knows the name can read the memory."""
        caplog.set_level("INFO", "core")
        name = connection.ask({"register": 4096}, memory())["name"]
        connection.ask({"unregister": name})

        by = "by a client of --shared-memory-socket done"
        audit = [text for text in caplog.messages if text.startswith("audit: ")]
        assert audit == [f"audit: memory.lend_from {by}", f"audit: memory.give_back {by}"]

    @pytest.mark.parametrize(
        ("seals", "size", "text"),
        [
            (0, 4096, "the memory is not sealed: F_ADD_SEALS with F_SEAL_SHRINK"),
            (SEAL_SHRINK, 4097, "4097 bytes of memory of 4096 bytes cannot be registered"),
            (SEAL_SHRINK, 0, "0 bytes of memory of 4096 bytes cannot be registered"),
            (SEAL_SHRINK, -1, "-1 bytes of memory"),
            (SEAL_SHRINK, 2**70, "bytes of memory of 4096 bytes cannot be registered"),
            (SEAL_SHRINK | SEAL_WRITE, 4096, "memory of 4096 bytes cannot be mapped"),
        ],
    )
    def test_memory_that_could_vanish_or_is_not_there_is_refused(
        self, connection, files, seals, size, text
    ):
        assert text in connection.ask({"register": size}, memory(seals=seals))["error"]
        assert files() == 0

    def test_only_memory_is_taken(self, connection, tmp_path):
        (tmp_path / "file").write_bytes(b"x" * 4096)
        reading, writing = os.pipe()
        for file in (os.open(tmp_path / "file", os.O_RDWR), writing, reading):
            assert (
                "is of no memory that can be sealed"
                in connection.ask({"register": 1}, file)["error"]
            )

    @pytest.mark.parametrize(
        "message",
        [
            b"{",
            b"[]",
            b"[" * 4000,
            b"\xff",
            {},
            {"register": "1"},
            {"register": True},
            {"unregister": "lent-x"},
            {"unregister": []},
            {"register": 1},
        ],
    )
    def test_an_invalid_message_is_refused_and_the_connection_continues(self, connection, message):
        assert "error" in connection.ask(message)
        assert "name" in connection.ask({"register": 1}, memory())

    def test_one_descriptor_comes_with_a_message(self, connection, files):
        mine = [memory() for _ in range(5)]
        connection.raw.sendmsg(
            [b'{"register": 1}'],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", mine))],
        )
        for each in mine:
            os.close(each)

        assert connection.raw.recv(4096) == b""  # cut: what else came with it is unknown
        assert files() == 0

    def test_a_message_that_is_too_long_ends_the_connection(self, connection):
        connection.raw.send(b" " * 5000)

        assert connection.raw.recv(4096) == b""


class TestUse:
    def test_other_clients_do_not_see_lent_memory_and_cannot_unregister_it(self, site, connection):
        name = connection.ask({"register": 4096}, memory())["name"]
        with tritonclient.http.InferenceServerClient(site.url("http")) as client:
            assert client.get_system_shared_memory_status() == []
            with pytest.raises(
                InferenceServerException, match="Unable to find system shared memory"
            ):
                client.get_system_shared_memory_status(name)
            client.unregister_system_shared_memory()
            client.unregister_system_shared_memory(name)
        other = BySocket(site.socket)
        with pytest.raises(SharedMemoryError, match="of a region of this connection"):
            other._ask({"unregister": name})
        other.close()

        assert site.lent() == 1
        assert connection.ask({"unregister": name}) == {}
        assert site.lent() == 0

    def test_a_region_goes_with_its_connection(self, site, connection, files):
        for _ in range(5):
            connection.ask({"register": 4096}, memory())
        assert (site.lent(), files()) == (5, 0)  # mapped: no descriptor is needed

        connection.raw.close()

        assert site.nothing_lent()

    def test_a_request_that_uses_it_finishes_first(self, site):
        backend = site.backend
        backend.seen.clear()
        backend.look_again.clear()
        answered = threading.Event()
        with tritonclient.grpc.InferenceServerClient(site.url("grpc")) as client:
            pool = SharedMemoryPool(client, socket=site.socket)
            x, y = pool.share(np.array([1], np.float32)), pool.empty(2)
            client.async_infer(
                "watch",
                [x.input("x")],
                lambda result, error: answered.set(),
                outputs=[y.output("y")],
            )
            assert backend.seen.wait(30)

            pool.close()
            assert site.nothing_lent()
            x.array[:] = 3
            backend.look_again.set()
            assert answered.wait(30)

            assert y.array.tolist() == [1, 3]

    def test_it_needs_no_leave_for_names(self, serving, tmp_path):
        with (
            serving(shared_memory_socket=f"{tmp_path}/m") as site,
            tritonclient.http.InferenceServerClient(site.url("http")) as client,
            SharedMemoryPool(client, socket=f"unix:{tmp_path}/m") as pool,
        ):
            x, y = pool.share(np.array([2], np.float32)), pool.empty(1)
            client.infer("double", [x.input("x")], outputs=[y.output("y")])

            assert y.array.tolist() == [4]
            with pytest.raises(InferenceServerException, match="Client shared memory is disabled"):
                SharedMemoryPool(client).empty(1)

    def test_the_end_of_the_server_hangs_up(self, serving, tmp_path):
        with serving(shared_memory_socket=f"{tmp_path}/m"):
            client = BySocket(f"{tmp_path}/m")
            client.register(client.make(4096))

        with pytest.raises(OSError):
            client.register(client.make(4096))
        client.close()


CONNECT = """
import sys
from core_client.registration import BySocket
client = BySocket(sys.argv[1])
try:
    client.register(client.make(4096))
    print("taken")
except OSError as error:
    print("refused")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(("users", "answer"), [([], "refused"), ([65534], "taken")])
def test_processes_of_other_users_are_refused_unless_they_are_named(serving, users, answer):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        path = f"{folder}/m"
        with serving(
            shared_memory_socket=path, unix_socket_mode="0666", shared_memory_socket_uid=users
        ):
            # The interpreter may be where that user cannot read: it changes its user itself.
            program = f"import os; import core_client; os.setuid(65534)\n{CONNECT}"
            found = subprocess.run(
                [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=50
            )

    assert found.stdout.strip() == answer, found.stderr
