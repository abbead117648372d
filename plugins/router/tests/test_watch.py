"""Which configurations a watch reads: a bounded number in a check, and each that was announced."""

import asyncio
import json

import aiohttp
import pytest
from core_router.servers import watch as module
from core_router.servers.left_models import LeftModels
from core_router.servers.server import Address, Server
from core_router.servers.table import ServerTable
from core_router.servers.watch import _MOST_ANNOUNCED, _MOST_READ_AGAIN, Watch

DECOUPLED = {"model_transaction_policy": {"decoupled": True}}


class Asked(Watch):
    """A watch whose server a test defines.

    names      of the models of the server
    configs    name → configuration
    failing    models whose configuration cannot be read
    read       models whose configuration was asked for, in order
    """

    def __init__(self, count):
        server = Server(Address("h", 1))
        super().__init__(server, ServerTable(), None, 1.0, 1.0, 3, {}, LeftModels())
        self.names = [f"m{each}" for each in range(count)]
        self.configs, self.failing, self.read = {}, set(), []
        self.check()

    def check(self):
        self.read.clear()
        self.server.checks_now.clear()
        asyncio.run(self._check())

    async def _ask(self, method, path):
        if path.endswith("/ready"):
            return 200, b""
        if path.endswith("/index"):
            entries = [{"name": each, "version": "1", "state": "READY"} for each in self.names]
            return 200, json.dumps(entries).encode()
        name = path.split("/")[3]
        self.read.append(name)
        if name in self.failing:
            raise aiohttp.ClientConnectionError("lost")
        return 200, json.dumps(self.configs.get(name, {})).encode()


@pytest.fixture
def watch():
    return Asked(10)


def test_models_that_were_announced_are_read_after_another_one_that_fails(watch):
    watch.announced(["m7", "m8", "m9"])
    watch.failing, watch.configs = {"m7"}, {"m9": DECOUPLED}
    watch.check()
    assert watch.read == ["m7"] and watch.server.checks_now.is_set()

    watch.check()

    assert watch.read[:2] == ["m8", "m9"]
    assert watch.server.models["m9"].is_decoupled


def test_a_model_that_was_announced_with_a_new_index_is_read_after_a_failure(watch):
    watch.announced(["m7"])
    watch.names.append("new")
    watch.failing, watch.configs = {"m7"}, {"m7": DECOUPLED}
    watch.check()
    assert watch.read == ["new", "m7"]

    watch.failing = set()
    watch.check()
    watch.check()

    assert watch.server.models["m7"].is_decoupled and "new" in watch.server.models


def test_many_models_that_were_announced_are_read_in_several_checks():
    found = Asked(50)
    found.announced(found.names)
    read, checks = set(), 0
    while found.server.checks_now.is_set():
        found.check()
        assert len(found.read) <= _MOST_ANNOUNCED + 2 * _MOST_READ_AGAIN
        read.update(found.read)
        checks += 1

    assert read == set(found.names) and checks <= 4


def test_a_model_that_changes_while_it_is_read_is_read_again(watch):
    ask = watch._ask

    async def change(method, path):
        if path.endswith("/m7/config") and "m7" not in watch.read:
            watch.announced(["m7"])
        return await ask(method, path)

    watch._ask = change
    watch.announced(["m7"])
    watch.check()
    assert watch.read[0] == "m7" and watch.server.checks_now.is_set()

    watch.check()

    assert watch.read[0] == "m7"


def test_an_announcement_does_not_wait_for_the_pause_after_a_check(watch, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_S", 600.0)

    async def run():
        checks = asyncio.ensure_future(watch.run())
        while watch._ended < 1:
            await asyncio.sleep(0)
        watch.server.checks_now.set()  # as after a request that failed
        await asyncio.sleep(0.1)
        before = watch._ended
        watch.announced(["m7"])
        while watch._ended == before:
            await asyncio.sleep(0.001)
        checks.cancel()
        return before

    assert asyncio.run(asyncio.wait_for(run(), 60)) == 1


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop whose time passes at once when nothing is left to do but wait."""

    def __init__(self):
        super().__init__()
        self.now_s, select = 0.0, self._selector.select

        def skip(timeout):
            self.now_s += timeout or 0.0
            return select(0)

        self._selector.select = skip

    def time(self):
        return self.now_s


class Timed(Asked):
    """A watch that keeps when its checks begin; each takes `takes_s`."""

    def __init__(self, takes_s):
        self.takes_s, self.begun_s = takes_s, []
        super().__init__(1)

    async def _check(self):
        self.begun_s.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.takes_s)


def begun(takes_s, *announced_s):
    """Return when the checks of a watch begin whose server announces a change at each of these times."""
    watch = Timed(takes_s)
    watch.begun_s.clear()

    async def run():
        checks = asyncio.ensure_future(watch.run())
        for at_s in announced_s:
            await asyncio.sleep(at_s - asyncio.get_running_loop().time())
            watch.announced(["m0"])
        await asyncio.sleep(0.2)
        checks.cancel()

    loop = VirtualTime()
    loop.run_until_complete(run())
    loop.close()
    return watch.begun_s


@pytest.mark.parametrize("takes_s", [0.0, 0.03, 0.1])
def test_changes_that_are_announced_all_the_time_do_not_multiply_the_checks(takes_s):
    found = begun(takes_s, *[each / 500 for each in range(2500)])

    assert len(found) == pytest.approx(5 / (takes_s + module._LEAST_S), rel=0.1)


def test_one_more_change_right_after_a_check_is_checked_at_once():
    first, second, third, *more = begun(0.0, 0.5, 0.501)

    assert (first, second) == (0.0, 0.5)
    assert third == pytest.approx(0.5 + module._LEAST_ANNOUNCED_S, abs=0.002)
    assert not more


@pytest.mark.parametrize("turns", range(5))
def test_a_watch_ends_also_while_a_change_is_announced(watch, monkeypatch, turns):
    monkeypatch.setattr(module, "_LEAST_S", 600.0)

    async def run():
        checks = asyncio.ensure_future(watch.run())
        while watch._ended < 1:
            await asyncio.sleep(0)
        await asyncio.sleep(5 * module._LEAST_ANNOUNCED_S)  # until it waits for announcements
        watch.announced(["m7"])
        for _ in range(turns):
            await asyncio.sleep(0)
        checks.cancel()
        await asyncio.wait({checks}, timeout=60)
        return checks.cancelled()

    assert asyncio.run(run())
