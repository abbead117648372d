"""SharedMemoryPool with tritonclient's clients: requests, the server's view, and the remaining memory."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from core_client import AsyncSharedMemoryPool, SharedMemoryPool

from core.system.platform import PORTABLE

pytestmark = pytest.mark.usefixtures("nothing_left")

CLIENTS = {"http": tritonclient.http, "grpc": tritonclient.grpc}


def in_shm():
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"core-pool-{os.getpid()}-")]


@pytest.fixture(params=CLIENTS)
def client(request, site):
    library = CLIENTS[request.param]
    with library.InferenceServerClient(site.url(request.param)) as found:
        yield found


SEALED = pytest.mark.skipif(PORTABLE, reason="only Linux has memory that can be sealed")


@pytest.fixture(params=["name", pytest.param("socket", marks=SEALED)])
def pool(request, site, client):
    socket = site.socket if request.param == "socket" else ""
    with SharedMemoryPool(client, socket=socket, segment_bytes=2**16) as found:
        yield found


class TestRequests:
    def test_inputs_are_written_and_outputs_read_in_place(self, client, pool):
        x, y = pool.empty((4,), np.float32), pool.empty((4,), "FP32")
        x.array[:] = [1, 2, 3, 4]

        client.infer("double", [x.input("x")], outputs=[y.output("y")])

        assert y.array.tolist() == [2, 4, 6, 8]

    def test_text_goes_both_ways(self, client, pool):
        x, y = pool.share(["Grüße", b"\0\1", ""]), pool.buffer(64)

        client.infer("words", [x.input("x")], outputs=[y.output("y")])

        assert y.texts((3,)).tolist() == ["Grüße".encode(), b"\0\1", b""]

    def test_tensors_of_the_clients_library_can_be_placed(self, client, pool):
        library = CLIENTS["grpc" if "grpc" in type(client).__module__ else "http"]
        x, y = pool.share(np.array([3], np.float32)), pool.empty(1)

        client.infer(
            "double",
            [x.place(library.InferInput("x", [1], "FP32"))],
            outputs=[y.place(library.InferRequestedOutput("y"))],
        )

        assert y.array.tolist() == [6]

    def test_memory_is_registered_once_and_used_often(self, client, pool, monkeypatch):
        registered = []
        register = pool._registration.register
        monkeypatch.setattr(
            pool._registration, "register", lambda each: registered.append(each) or register(each)
        )

        for number in range(20):
            with pool.share(np.full(8, number, np.float32)) as x, pool.empty(8) as y:
                client.infer("double", [x.input("x")], outputs=[y.output("y")])
                assert y.array.tolist() == [2 * number] * 8

        assert len(registered) == 1

    def test_large_arrays_have_segments_of_their_own(self, client, pool):
        x, y = pool.share(np.arange(10**6, dtype=np.float32)), pool.empty(10**6)

        client.infer("double", [x.input("x")], outputs=[y.output("y")])

        assert np.array_equal(y.array, x.array * 2)
        assert (x.offset, y.offset) == (0, 0) and x.region != y.region


@pytest.mark.parametrize("kind", ["http", "grpc"])
@pytest.mark.parametrize("by", ["name", pytest.param("socket", marks=SEALED)])
def test_asyncio(site, kind, by):
    library = {"http": tritonclient.http.aio, "grpc": tritonclient.grpc.aio}[kind]

    async def one(client, pool, number):
        x, y = await pool.share(np.full(3, number, np.float32)), await pool.empty(3)
        await client.infer("double", [x.input("x")], outputs=[y.output("y")])
        return y.array.tolist()

    async def run():
        async with library.InferenceServerClient(site.url(kind)) as client:
            socket = site.socket if by == "socket" else ""
            async with AsyncSharedMemoryPool(client, socket=socket) as pool:
                found = await asyncio.gather(*(one(client, pool, number) for number in range(10)))
                assert pool.byte_size == 16 * 2**20
                words, buffer = await pool.share(["a", "b"]), await pool.buffer(32)
                await client.infer("words", [words.input("x")], outputs=[buffer.output("y")])
                return found, buffer.texts((2,)).tolist()

    assert asyncio.run(run()) == ([[2 * n] * 3 for n in range(10)], [b"a", b"b"])


def test_threads_share_a_pool(site):
    with (
        tritonclient.grpc.InferenceServerClient(site.url("grpc")) as client,
        SharedMemoryPool(client, socket=site.socket, segment_bytes=2**14) as pool,
    ):
        wrong = []

        def work(number):
            for step in range(20):
                x, y = (
                    pool.share(np.full(64 * (step + 1), number, np.float32)),
                    pool.empty(64 * (step + 1)),
                )
                client.infer("double", [x.input("x")], outputs=[y.output("y")])
                if not (y.array == 2 * number).all():
                    wrong.append((number, step))

        threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert wrong == []


class TestNoCopies:
    """The model's memory is the client's."""

    def inode(self, address):
        """Of the file that is mapped at an address of this process, where the server is too."""
        with open("/proc/self/maps") as maps:
            for line in maps:
                begin, end = (int(each, 16) for each in line.split()[0].split("-"))
                if begin <= address < end:
                    return int(line.split()[4])
        raise AssertionError("nothing is mapped there")

    @pytest.mark.parametrize("by", ["name", pytest.param("socket", marks=SEALED)])
    def test_a_model_sees_bytes_that_the_client_writes_after_sending(self, site, by):
        backend = site.backend
        backend.seen.clear()
        backend.look_again.clear()
        with (
            tritonclient.grpc.InferenceServerClient(site.url("grpc")) as client,
            SharedMemoryPool(client, socket=site.socket if by == "socket" else "") as pool,
        ):
            x, y = pool.share(np.array([1, 0], np.float32)), pool.empty(2)
            answered = threading.Event()
            client.async_infer(
                "watch",
                [x.input("x")],
                lambda result, error: answered.set(),
                outputs=[y.output("y")],
            )
            assert backend.seen.wait(30)  # the model has its view, and waits
            mine = x.array.__array_interface__["data"][0]
            assert self.inode(backend.address) == self.inode(mine) != 0
            assert backend.address != mine  # two mappings of one memory

            x.array[0] = 2
            backend.look_again.set()

            assert answered.wait(30)
            assert y.array.tolist() == [1, 2]


class TestTheEnd:
    def test_names_are_removed_as_soon_as_the_server_has_the_memory(self, client, pool):
        pool.empty(4)

        assert in_shm() == []

    def test_names_stay_for_workers_that_come_later_if_wanted(self, client):
        with SharedMemoryPool(client, keep_names=True) as pool:
            pool.empty(4)
            assert len(in_shm()) == 1

        assert in_shm() == []

    def test_the_server_unregisters_regions(self, site, client, pool):
        x = pool.empty(4)
        lent = site.lent()

        pool.close()
        pool.close()

        assert site.memory.status() == []
        assert lent == 0 or site.nothing_lent()
        x.array[:] = 5  # memory that the server has no more, and this process still
        with pytest.raises(ValueError, match="the pool is closed"):
            pool.empty(4)

    @SEALED
    def test_a_pool_without_references_is_closed(self, site, client):
        x = SharedMemoryPool(client, socket=site.socket).empty(4)
        assert site.lent() == 1

        del x

        assert site.nothing_lent()

    @SEALED
    def test_a_server_that_has_ended_is_no_error(self, serving, tmp_path):
        with serving(shared_memory_socket=f"{tmp_path}/m", allow_client_shm=True) as other:
            client = tritonclient.http.InferenceServerClient(other.url("http"))
            pools = [SharedMemoryPool(client), SharedMemoryPool(socket=f"{tmp_path}/m")]
            for each in pools:
                each.empty(4)

        for each in pools:
            each.close()
        client.close()


# A client in a separate process: argv has the server's URL, the socket and the way to end.
PROGRAM = """
import json, os, signal, sys
import numpy as np, tritonclient.http
from core_client import SharedMemoryPool
url, socket, how = sys.argv[1:]
client = tritonclient.http.InferenceServerClient(url)
pool = SharedMemoryPool(client, socket=socket)
x, y = pool.share(np.array([4], np.float32)), pool.empty(1)
client.infer("double", [x.input("x")], outputs=[y.output("y")])
print(json.dumps(y.array.tolist()), flush=True)
if how == "raise":
    raise RuntimeError("over")
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "fork":
    if os.fork() == 0:
        try:
            pool.empty(1)
        except ValueError as error:
            print(error, x.array.tolist(), flush=True)
        sys.exit(0)
    os.wait()
    x.array[:] = 5
    client.infer("double", [x.input("x")], outputs=[y.output("y")])
    print(y.array.tolist(), flush=True)
"""


@pytest.mark.parametrize("by", ["name", pytest.param("socket", marks=SEALED)])
class TestProcesses:
    def run(self, site, by, how):
        socket = site.socket if by == "socket" else ""
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM, site.url("http"), socket, how],
            capture_output=True,
            text=True,
            timeout=50,
        )
        first, *rest = found.stdout.splitlines()
        assert json.loads(first) == [8]
        return found.returncode, rest

    def test_the_end_of_the_interpreter_leaves_no_files(self, site, by):
        assert self.run(site, by, "raise") == (1, [])

    def test_a_client_that_is_killed_leaves_no_file(self, site, by):
        assert self.run(site, by, "kill") == (-signal.SIGKILL, [])
        assert site.nothing_lent()

        # Only a client that knows the name can unregister a region by name: docs/serve/shared-memory.md.
        site.run(site.memory.unregister())

    def test_a_forked_process_closes_no_object_of_its_parent(self, site, by):
        status, lines = self.run(site, by, "fork")

        assert status == 0
        assert lines == [
            "the pool belongs to the parent process; make a new one after a fork [4.0]",
            "[10.0]",
        ]
