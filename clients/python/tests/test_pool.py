"""The pool without a server: sizes, reuse, limits and imports."""

import gc
import os
import socket
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from core_client import SharedMemoryPool, segment
from core_client.allocator import SMALLEST, Allocator, size_class
from core_client.registration import BySocket
from core_client.shared_array import decode, encode
from hypothesis import given
from hypothesis import strategies as st


class Client:
    """The methods of tritonclient that a pool uses."""

    def __init__(self):
        self.registered = {}
        self.refuses = False
        self.lock = threading.Lock()

    def register_system_shared_memory(self, name, key, byte_size):
        if self.refuses:
            raise RuntimeError("Client shared memory is disabled")
        assert os.path.exists(f"/dev/shm{key}")
        with self.lock:
            self.registered[name] = byte_size

    def unregister_system_shared_memory(self, name):
        del self.registered[name]


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def pool(client):
    with SharedMemoryPool(client, segment_bytes=2**16, most_bytes=2**20) as found:
        yield found


def mine():
    return [each for each in os.listdir("/dev/shm") if each.startswith(f"core-pool-{os.getpid()}-")]


class TestSizes:
    @given(st.integers(0, 2**44))
    def test_a_block_is_at_most_a_quarter_larger_than_requested(self, byte_size):
        size = size_class(byte_size)

        assert size >= byte_size and size % 1024 == 0
        assert size == SMALLEST or size <= byte_size * 1.25
        assert size_class(size) == size

    @given(st.lists(st.integers(1, 2**15), min_size=1, max_size=50), st.data())
    def test_no_two_arrays_have_the_same_byte(self, sizes, data):
        pool = SharedMemoryPool(Client(), segment_bytes=2**15)
        taken = {}
        for number, size in enumerate(sizes):
            shared = pool.buffer(size)
            shared.array[:] = number % 251
            taken[number] = shared
            if data.draw(st.booleans()):
                del taken[data.draw(st.sampled_from(sorted(taken)))]
            del shared

        for number, shared in taken.items():
            assert (shared.array == number % 251).all()
        taken.clear()
        pool.close()


class TestReuse:
    def test_a_block_comes_back_when_it_is_released(self, pool):
        first = pool.empty(100)
        place = first.region, first.offset
        first.release()

        again = pool.empty(90)

        assert (again.region, again.offset) == place
        with pytest.raises(ValueError, match="has been released"):
            _ = first.array

    def test_it_does_not_come_back_while_an_array_uses_it(self, pool):
        first = pool.empty(100)
        place, view = first.offset, first.array[3:5]
        first.release()

        assert pool.empty(100).offset != place
        del view
        gc.collect()
        assert pool.empty(100).offset == place

    def test_an_array_that_only_its_tensor_has_is_not_given_to_the_next(self, pool):
        class Tensor:
            def set_shared_memory(self, region, byte_size, offset):
                self.place = region, offset

        first = pool.share(np.ones(4)).place(Tensor())
        second = pool.share(np.zeros(4)).place(Tensor())

        assert first.place != second.place
        place = second.place
        del second
        assert pool.share(np.zeros(4)).place(Tensor()).place == place

    def test_garbage_collection_frees_blocks_also_while_the_pool_is_busy(self, pool):
        allocator = Allocator(2**16)

        class Block:
            size = SMALLEST

        with allocator._lock:
            allocator.free(Block)

        assert allocator.allocate(1) is Block


class TestBounds:
    def test_there_are_so_many_bytes_at_most(self, pool):
        held = [pool.empty(2**16, np.uint8) for _ in range(16)]

        with pytest.raises(
            MemoryError, match="may have 1048576: release arrays, or raise most_bytes"
        ):
            pool.empty(2**16, np.uint8)
        held.pop()
        pool.empty(2**16, np.uint8)

    def test_segments_of_other_sizes_are_released_before_the_limit(self, client, pool):
        kept = pool.share(np.arange(2000))
        for size in range(2**16, 2**19, 2**15):
            pool.empty(size, np.uint8).release()

        assert len(client.registered) == len(pool._segments)
        assert pool.byte_size <= 2**20
        assert kept.region in client.registered
        assert (kept.array == np.arange(2000)).all()

    def test_nothing_is_given_back_where_that_is_not_enough(self, client, pool):
        kept = [pool.empty(2**18, np.uint8) for _ in range(3)]
        pool.empty(2**17, np.uint8).release()
        before = dict(client.registered)

        with pytest.raises(MemoryError):
            pool.empty(2**19, np.uint8)

        assert client.registered == before
        assert len(kept) == 3

    @given(st.lists(st.integers(1, 2**19), max_size=60), st.data())
    def test_only_used_memory_counts_for_the_limit(self, sizes, data):
        pool = SharedMemoryPool(Client(), segment_bytes=2**16, most_bytes=2**22)
        held = []
        for size in sizes:
            held.append(pool.buffer(size))
            while sum(size_class(each.byte_size) for each in held) > 2**20:
                held.pop(data.draw(st.integers(0, len(held) - 1)))

        assert pool.byte_size <= 2**22
        held.clear()
        pool.close()

    def test_memory_that_the_machine_does_not_have_is_an_error_and_not_a_fault_later(self, client):
        with SharedMemoryPool(client, most_bytes=2**62) as pool:
            with pytest.raises(MemoryError, match="of shared memory: "):
                pool.empty(2**50, np.uint8)
            assert mine() == []

    def test_a_refusal_of_the_server_leaves_no_memory(self, client, pool):
        client.refuses = True
        with pytest.raises(RuntimeError, match="disabled"):
            pool.empty(4)
        assert (mine(), pool.byte_size) == ([], 0)

        client.refuses = False
        pool.empty(4)


@pytest.mark.skipif(segment._PORTABLE, reason="only Linux has memory without a name")
class TestASocket:
    def test_the_response_to_an_interrupted_request_is_not_that_of_the_next_request(
        self, tmp_path, monkeypatch
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(f"{tmp_path}/m")
            listening.listen()
            asking = BySocket(f"{tmp_path}/m")
            server, _ = listening.accept()
        segments = [asking.make(SMALLEST), asking.make(SMALLEST)]
        with server, monkeypatch.context() as context:
            server.send(b'{"name": "of the first"}')
            context.setattr(socket, "send_fds", interrupted(socket.send_fds))
            with pytest.raises(KeyboardInterrupt):
                asking.register(segments[0])
            context.undo()
            with pytest.raises(OSError):
                asking.register(segments[1])
        for each in segments:
            each.close()


def interrupted(send):
    def sent(*question):
        send(*question)
        raise KeyboardInterrupt

    return sent


class TestTheEnd:
    def test_a_pool_that_is_closed_while_it_grows_leaves_nothing(self, client, pool, monkeypatch):
        register = client.register_system_shared_memory

        def closing(*segment):
            register(*segment)
            pool.close()

        monkeypatch.setattr(client, "register_system_shared_memory", closing)

        with pytest.raises(ValueError, match="the pool is closed"):
            pool.empty(4)
        assert (client.registered, mine()) == ({}, [])

    def test_an_array_that_is_read_after_the_end_keeps_its_memory(self, client, pool):
        array = pool.share(np.arange(5)).array

        pool.close()

        assert array.tolist() == [0, 1, 2, 3, 4]


class TestDatatypes:
    @pytest.mark.parametrize(
        ("dtype", "name"),
        [
            (np.float32, "FP32"),
            ("int64", "INT64"),
            (bool, "BOOL"),
            ("BF16", "BF16"),
            ("FP16", "FP16"),
        ],
    )
    def test_both_names_of_a_datatype_are_known(self, pool, dtype, name):
        shared = pool.empty((2, 3), dtype)

        assert (shared.datatype, shared.shape) == (name, (2, 3))
        assert shared.byte_size == shared.array.nbytes

    def test_an_array_may_have_no_elements(self, pool):
        shared = pool.empty((0, 3))

        assert (shared.array.shape, shared.byte_size) == ((0, 3), 0)

    @pytest.mark.parametrize("dtype", [object, "S4", "complex64", "BYTES"])
    def test_others_are_refused(self, pool, dtype):
        with pytest.raises(TypeError):
            pool.empty(1, dtype)

    @given(st.lists(st.binary(max_size=20), max_size=20))
    def test_bytes_have_the_wire_form_of_the_protocol(self, elements):
        array = np.array([*elements, None], object)[:-1]

        assert encode(array) == b"".join(struct.pack("<I", len(each)) + each for each in elements)
        assert decode(memoryview(encode(array)), (len(elements),)).tolist() == elements

    def test_elements_that_are_no_bytes_have_their_text(self):
        array = np.array([7, "seven", bytearray(b"7"), 7.5], object)

        assert encode(array) == encode(np.array([b"7", b"seven", b"7", b"7.5"], object))

    @given(st.binary(max_size=40), st.integers(-1, 6))
    def test_bytes_that_are_cut_are_refused_or_are_whole(self, data, count):
        try:
            found = decode(memoryview(data), (count,))
        except ValueError:
            return
        assert data.startswith(encode(found))

    def test_a_tensor_needs_a_client_to_choose_its_class(self, pool):
        with pytest.raises(TypeError, match="no client of tritonclient"):
            pool.empty(1).input("x")


def test_a_pool_needs_a_client_or_a_socket():
    with pytest.raises(TypeError, match="a client of tritonclient, or the path"):
        SharedMemoryPool()


def test_importing_it_imports_nothing_of_a_server():
    program = """
import sys
import core_client
found = {each.split(".")[0] for each in sys.modules}
assert not found & {"core", "frontends", "tritonclient", "grpc", "aiohttp", "google", "pluggy"}, found
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_a_system_without_unnamed_memory_imports_it_and_refuses_a_socket():
    program = """
import sys, socket
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
del socket.CMSG_SPACE, socket.SCM_RIGHTS
from core_client.segment import sealed_segment
try:
    sealed_segment(4096)
except OSError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )

    assert "only Linux has memory without a name" in done.stdout
