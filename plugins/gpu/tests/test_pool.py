"""Parts of one block: they never overlap, and all memory comes back."""

import gc
import threading
import weakref
from itertools import pairwise

import numpy as np
import pytest
from core_gpu.block import Block
from core_gpu.memory_views import host_array
from core_gpu.pool import ALIGNMENT, Pool
from hypothesis import given
from hypothesis import strategies as st

SIZE = 16 * ALIGNMENT


def pool_of(size=SIZE, address=0, free=lambda: None):
    return Pool(Block(address, size, free))


# Positive: take so many bytes. Negative: give back the part of that index, modulo their number.
@given(st.lists(st.integers(-20, 3 * ALIGNMENT), max_size=60))
def test_parts_never_overlap_and_all_memory_comes_back(steps):
    pool, held = pool_of(), []

    for step in steps:
        if step >= 0:
            if (lease := pool.take(step)) is not None:
                held.append(lease)
        elif held:
            del held[step % len(held)]
        lease = None
        parts = sorted(each._part for each in held)
        assert all(start % ALIGNMENT == 0 for start, _ in parts)
        assert all(a[0] + a[1] <= b[0] for a, b in pairwise(parts))
        assert pool.used == sum(size for _, size in parts)
        ends = [start + size for start, size in pool._holes]
        assert all(end < hole[0] for end, hole in zip(ends, pool._holes[1:], strict=False))
    held.clear()

    assert pool.used == 0 and pool._holes == [(0, SIZE)]


def test_a_part_for_which_there_is_no_room_is_refused_until_there_is():
    pool = pool_of()
    whole = pool.take(SIZE)

    assert pool.take(1) is None
    del whole

    assert pool.take(SIZE) is not None


def test_a_part_comes_back_with_the_last_view_of_its_array():
    memory = np.zeros(SIZE, np.uint8)
    pool = pool_of(address=memory.ctypes.data)
    lease = pool.take(1000)
    array = host_array(lease.address, 1000, lease)
    part = array.view(np.float32)[10:20].reshape(2, 5)
    del lease, array

    part[:] = 7

    assert pool.used == 1024
    assert memory[40:80].view(np.float32).tolist() == [7.0] * 10
    del part
    assert pool.used == 0


def test_the_block_is_freed_with_its_last_part_and_not_with_the_pool():
    freed = []
    pool = pool_of(free=lambda: freed.append(True))
    lease = pool.take(10)

    del pool
    assert not freed
    del lease

    assert freed


def test_a_part_that_the_garbage_collector_frees_while_the_pool_is_locked_does_not_block():
    pool = pool_of()
    lease = pool.take(10)

    with pool._lock:
        del lease

    assert pool.used == 0


def test_threads_share_a_pool():
    memory = np.zeros(SIZE, np.uint8)
    pool, wrong = pool_of(address=memory.ctypes.data), []

    def work(number):
        for _ in range(500):
            if (lease := pool.take(700)) is None:
                continue
            array = host_array(lease.address, 700, lease)
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong and pool.used == 0


def test_a_torch_tensor_of_an_array_keeps_the_part():
    torch = pytest.importorskip("torch")
    memory = np.zeros(SIZE, np.uint8)
    pool = pool_of(address=memory.ctypes.data)
    lease = pool.take(64)
    tensor = (
        torch.from_numpy(host_array(lease.address, 64, lease)).view(torch.float32).reshape(4, 4)
    )
    gone = weakref.ref(tensor)
    del lease
    gc.collect()

    tensor.fill_(2)

    assert pool.used == 256 and memory[:64].view(np.float32).sum() == 32
    del tensor
    assert gone() is None and pool.used == 0
