"""The Redis cache, with a real redis-server, behind a whole server."""

import asyncio
import contextlib
import logging
import shutil
import socket
import subprocess

import numpy as np
import pytest

from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

PROGRAM = shutil.which("redis-server")

CONFIG = """
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
response_cache { enable: true }
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Taken(Exception):
    pass


class Redis:
    """A redis-server on a free port, which writes no files."""

    def __init__(self, folder, *arguments):
        self.port = free_port()
        self._command = [
            PROGRAM, "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly",
            "no", "--dir", str(folder), *arguments,
        ]  # fmt: skip
        self._process = None

    async def start(self):
        """Start the program, and wait until it answers. Raises Taken if it ends: the port is taken."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        for _ in range(1000):
            if self._process.poll() is not None:
                raise Taken
            with contextlib.suppress(OSError):
                if (await self.talk(b"PING")).startswith((b"+PONG", b"-NOAUTH")):
                    return
            await asyncio.sleep(0.01)
        raise AssertionError("redis-server does not listen")

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    async def talk(self, line):
        """Send a command; return the first line of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(line + b"\r\n")
        try:
            return (await reader.readline()).strip()
        finally:
            writer.close()
            await writer.wait_closed()

    async def keeps(self, count):
        """Wait until the server has `count` entries: the cache sends them after the reply."""
        for _ in range(1000):
            if await self.talk(b"DBSIZE") == b":%d" % count:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"not {count} entries")


@pytest.fixture
async def redis(tmp_path_factory):
    if PROGRAM is None:
        pytest.skip("redis-server is not installed; Debian: apt-get install redis-server")
    started = []

    async def start(*arguments):
        for _ in range(10):
            found = Redis(tmp_path_factory.mktemp("redis"), *arguments)
            started.append(found)
            with contextlib.suppress(Taken):
                await found.start()
                return found
        raise AssertionError("no port for redis-server")

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def cached(serve, models):
    """A function (port, **settings) that returns a server with the Redis cache and the loaded model m."""

    models.write("m", "3", config=CONFIG)

    async def start(port, **settings):
        server = await serve(
            cache_config={"redis": {"host": "127.0.0.1", "port": str(port), **settings}}
        )
        await server.models.load("m")
        return server

    return start


def counts(server):
    found = server.control.health.statistics_here("m")[0]
    return {
        "executions": found["execution_count"],
        "hits": found["inference_stats"]["cache_hit"]["count"],
        "misses": found["inference_stats"]["cache_miss"]["count"],
    }


async def y(reply):
    return (await reply).output("y").array.tolist()


async def test_an_equal_request_is_answered_from_redis(redis, cached, ask):
    found = await redis()
    server = await cached(found.port)

    first = await y(ask(server, 2))
    await found.keeps(1)
    second = await y(ask(server, 2))

    assert first == second == [6]
    assert counts(server) == {"executions": 1, "hits": 1, "misses": 1}
    metrics = {family.name: family.samples for family in server.control.health.metrics_here()}
    assert metrics["nv_cache_num_hits_per_model"][0].value == 1
    assert metrics["core_cache_hits"][0].value == 1
    assert metrics["core_cache_failures"][0].value == 0


async def test_parameters_and_requested_outputs_distinguish_requests(redis, cached):
    found = await redis()
    server = await cached(found.port)

    def asked(**kwargs):
        x = Tensor.of("x", np.array([2], np.float32))
        return server.models.infer(InferenceRequest("m", {"x": x}, **kwargs))

    for count, kwargs in enumerate(
        ({}, {"parameters": {"a": 1}}, {"outputs": (RequestedOutput("y"),)}), 1
    ):
        await asked(**kwargs)
        await found.keeps(count)

    assert counts(server)["hits"] == 0


async def test_servers_share_entries_in_redis(redis, cached, ask):
    found = await redis()
    one = await cached(found.port)
    await ask(one, 2)
    await found.keeps(1)

    other = await cached(found.port)

    assert await y(ask(other, 2)) == [6]
    assert counts(other) == {"executions": 0, "hits": 1, "misses": 0}


async def test_responses_expire_after_the_configured_time(redis, cached, ask):
    found = await redis()
    server = await cached(found.port, ttl="100")
    await ask(server, 2)
    await found.keeps(1)

    key = await key_of(found)

    assert 0 < int((await found.talk(b"TTL " + key)).removeprefix(b":")) <= 100


async def test_a_larger_response_is_not_sent(redis, cached, ask):
    found = await redis()
    less, enough = [await cached(found.port, largest=each) for each in "34"]

    await ask(less, 2)
    await ask(enough, 3)
    await found.keeps(1)

    assert less.cache.counters.insertions == 0


async def test_equal_requests_that_come_together_run_once(redis, cached, ask):
    pytest.importorskip("core_response_cache")
    found = await redis()
    server = await cached(found.port, coalesce="true")

    replies = [ask(server, 2) for _ in range(5)]

    assert [await y(each) for each in replies] == [[6]] * 5
    assert counts(server) == {"executions": 1, "hits": 4, "misses": 1}
    await found.keeps(1)


async def key_of(found):
    reader, writer = await asyncio.open_connection("127.0.0.1", found.port)
    writer.write(b"KEYS *\r\n")
    lines = [await reader.readline() for _ in range(3)]
    writer.close()
    await writer.wait_closed()
    return lines[2].strip()


async def test_an_entry_that_is_damaged_is_a_miss(redis, cached, ask):
    found = await redis()
    server = await cached(found.port)
    await ask(server, 2)
    await found.keeps(1)
    await found.talk(b"SET " + await key_of(found) + b" nonsense")

    assert await y(ask(server, 2)) == [6]
    assert counts(server) == {"executions": 2, "hits": 0, "misses": 2}
    assert server.cache.counters.failures == 1


async def test_user_and_password_open_a_redis_that_requires_them(redis, cached, ask):
    found = await redis("--requirepass", "secret")
    server = await cached(found.port, user="default", password="secret")
    await ask(server, 2)
    while not server.cache.counters.insertions:
        await asyncio.sleep(0.01)

    await ask(server, 2)

    assert counts(server)["hits"] == 1


async def test_a_redis_that_refuses_the_password_fails_no_request(redis, cached, ask, caplog):
    found = await redis("--requirepass", "secret")
    server = await cached(found.port, password="wrong")

    assert await y(ask(server, 2)) == [6]
    assert counts(server)["misses"] == 1
    assert server.cache.counters.failures >= 1
    assert "secret" not in caplog.text and "wrong" not in caplog.text


async def test_a_redis_that_is_not_there_fails_no_request_and_is_logged_once(cached, ask, caplog):
    port = free_port()
    server = await cached(port)

    with caplog.at_level(logging.WARNING, "core"):
        answers = [await y(ask(server, n)) for n in range(20)]

    assert answers == [[3 * n] for n in range(20)]
    assert counts(server) == {"executions": 20, "hits": 0, "misses": 20}
    lines = [r.getMessage() for r in caplog.records if "cache 'redis'" in r.getMessage()]
    assert len(lines) == 1
    assert f"cache 'redis' at 127.0.0.1:{port} cannot look up an answer (1 failures" in lines[0]


async def test_a_redis_that_never_answers_is_a_miss_after_the_lookup_timeout(cached, ask):
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    server = await cached(listening.sockets[0].getsockname()[1], lookup_timeout="20")

    answers = await asyncio.gather(*(y(ask(server, n)) for n in range(50)))

    assert answers == [[3 * n] for n in range(50)]
    assert counts(server)["misses"] == 50
    assert server.cache.counters.failures >= 1
    listening.close()


async def test_a_redis_that_comes_back_is_used_again(redis, cached, ask, monkeypatch):
    monkeypatch.setattr("core_redis.cache._REST_S", 0.0)
    found = await redis()
    server = await cached(found.port)
    await ask(server, 2)
    await found.keeps(1)
    found.stop()
    assert await y(ask(server, 2)) == [6]

    await found.start()
    await ask(server, 2)
    await found.keeps(1)
    await ask(server, 2)

    assert counts(server)["hits"] == 1


async def test_a_request_that_is_cancelled_during_its_lookup_never_reaches_the_model(cached, ask):
    asked = asyncio.Event()

    async def silent(reader, writer):
        asked.set()
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    server = await cached(listening.sockets[0].getsockname()[1], lookup_timeout="50")
    reply = ask(server, 2)
    await asked.wait()

    reply.cancel()

    assert [each.message async for each in reply] == ["request was cancelled"]
    assert counts(server)["executions"] == 0
    listening.close()


async def test_a_model_that_has_changed_gets_no_answer_of_the_one_before(
    redis, cached, ask, models
):
    found = await redis()
    server = await cached(found.port)
    await ask(server, 2)
    await found.keeps(1)

    models.write("m", "50", config=CONFIG)
    await server.models.load("m")

    assert await y(ask(server, 2)) == [100]
