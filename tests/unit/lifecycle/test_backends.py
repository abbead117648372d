"""Backends are opened before their first model and closed after their last."""

import asyncio

import pytest

import core
from core.errors import CoreError
from core.lifecycle.backends import BackendPool


class Noting(core.Backend):
    def __init__(self, fails=0):
        super().__init__(instance=core.ModelInstance)
        self.name = "noting"
        self.calls = []
        self.fails = fails

    def open(self):
        self.calls.append(f"open {self.config}")
        if self.fails:
            self.fails -= 1
            raise RuntimeError("no device")

    def close(self):
        self.calls.append("close")


async def direct(function, *args):
    """Run on a thread that the pool takes for a worker thread."""
    await asyncio.sleep(0)
    return function(*args)


def pool_of(backend, settings=None):
    names = {"noting": backend, "alias": backend}
    return BackendPool(direct, names.__getitem__, settings or {})


async def test_users_at_the_same_time_share_one_open_backend():
    backend = Noting()
    pool = pool_of(backend)

    found = await asyncio.gather(*(pool.acquire("noting") for _ in range(5)))

    assert found == [backend] * 5
    assert backend.calls == ["open {}"]


async def test_two_names_of_one_backend_open_it_once():
    backend = Noting()
    pool = pool_of(backend)

    await asyncio.gather(pool.acquire("noting"), pool.acquire("alias"))

    assert backend.calls == ["open {}"]


async def test_the_last_user_closes_it_and_the_next_opens_it_again():
    backend = Noting()
    pool = pool_of(backend)
    for _ in range(2):
        await pool.acquire("noting")

    await pool.release(backend)
    assert "close" not in backend.calls
    await pool.release(backend)
    await pool.acquire("noting")

    assert backend.calls == ["open {}", "close", "open {}"]


async def test_a_backend_that_does_not_open_is_tried_again_by_the_next():
    backend = Noting(fails=1)
    pool = pool_of(backend)

    with pytest.raises(CoreError, match="RuntimeError: no device"):
        await pool.acquire("noting")
    await pool.acquire("noting")
    await pool.release(backend)

    assert backend.calls == ["open {}", "open {}", "close"]


async def test_a_load_that_begins_while_the_last_user_leaves_has_an_open_backend():
    backend = Noting()
    pool = pool_of(backend)
    await pool.acquire("noting")

    leave, enter = await asyncio.gather(pool.release(backend), pool.acquire("noting"))

    assert (leave, enter) == (None, backend)
    assert backend.calls.count("close") == len(backend.calls) - 1 - backend.calls.count("close")


async def test_settings_for_all_backends_come_before_its_own():
    backend = Noting()
    settings = {"": {"a": "all", "b": "all"}, "noting": {"b": "own"}, "other": {"c": "x"}}

    await pool_of(backend, settings).acquire("noting")

    assert backend.calls == ["open {'a': 'all', 'b': 'own'}"]


async def test_unknown_settings_of_a_backend_are_logged_when_it_opens(caplog):
    backend = Noting()
    backend.known_settings = ("threads",)
    pool = pool_of(backend, {"": {"a": "all"}, "noting": {"threads": "1", "thread": "2"}})

    await asyncio.gather(pool.acquire("noting"), pool.acquire("noting"))

    assert caplog.messages == [
        "--backend-config=noting,thread: there is no such setting; it has no effect; is 'threads' meant?"
    ]


async def test_a_name_is_looked_up_once():
    backend = Noting()
    asked = []
    pool = BackendPool(direct, lambda name: asked.append(name) or backend, {})

    await asyncio.gather(*(pool.acquire("noting") for _ in range(5)))
    await pool.acquire("noting")

    assert asked == ["noting"]


async def test_a_name_that_was_not_found_is_looked_up_again():
    backend = Noting()
    names = {}
    pool = BackendPool(direct, names.__getitem__, {})
    with pytest.raises(KeyError):
        await pool.acquire("noting")

    names["noting"] = backend

    assert await pool.acquire("noting") is backend
