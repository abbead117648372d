"""Which cache an option asks for, and the settings of those that are there."""

import re
from pathlib import Path

import numpy as np
import pytest

import core
from core import plugins
from core.caches import Cache, open_cache
from core.caches.redis_settings import redis_cache_settings
from core.errors import CoreError, Kind
from core.tensor import Tensor


class Mine(Cache):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings


class Plugin:
    """Brings a cache `mine`, and something else as `odd`."""

    @core.hookimpl
    def core_open_cache(self, name, settings):
        return {"mine": Mine(settings), "odd": "text"}.get(name)


@pytest.fixture
def plugin():
    found = Plugin()
    plugins.hooks().register(found)
    yield
    plugins.hooks().unregister(found)


def test_a_plugin_brings_a_cache_by_its_name(plugin):
    cache = open_cache({"mine": {"size": "7"}})

    assert isinstance(cache, Mine)
    assert cache.settings == {"size": "7"}


def test_a_plugin_that_makes_something_else_is_named(plugin):
    with pytest.raises(CoreError, match=r"cache 'odd' made a str, not a core\.caches\.Cache"):
        open_cache({"odd": {}})


def test_a_cache_that_nobody_brings_is_refused(plugin):
    with pytest.raises(CoreError, match=r"no cache named 'other' \(installed: local, redis"):
        open_cache({"other": {"a": "b"}})


def test_settings_of_redis_are_those_of_the_original():
    found = redis_cache_settings(
        {"host": "r", "port": "7", "user": "u", "password": "p", "db": "2", "pool_size": "3",
         "connect_timeout": "50", "socket_timeout": "60", "wait_timeout": "70", "ttl": "9",
         "lookup_timeout": "80", "tls_enabled": "true", "cacert": "ca.pem"}
    )  # fmt: skip

    assert found.connection == {
        "host": "r", "port": 7, "username": "u", "password": "p", "db": 2, "max_connections": 3,
        "socket_connect_timeout": 0.05, "socket_timeout": 0.06, "timeout": 0.07,
        "ssl_ca_certs": "ca.pem",
    }  # fmt: skip
    assert (found.where, found.ttl_s, found.lookup_timeout_s, found.tls) == ("r:7", 9, 0.08, True)


def test_user_and_password_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("TRITONCACHE_REDIS_USERNAME", "u")
    monkeypatch.setenv("TRITONCACHE_REDIS_PASSWORD", "p")

    found = redis_cache_settings({"host": "r"}).connection

    assert (found["username"], found["password"]) == ("u", "p")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "no host"),
        ({"host": "r", "hots": "x"}, "no setting 'hots'; there are host, port"),
        ({"host": "r", "port": "0"}, "port=0; a port is a number from 1 to 65535"),
        ({"host": "r", "ttl": "-1"}, "ttl=-1; it is a number"),
        ({"host": "r", "tls_enabled": "1"}, "tls_enabled=1; it is true or false"),
        ({"host": "r", "cert": "x"}, "a certificate or key, but not tls_enabled=true"),
    ],
)
def test_wrong_settings_of_redis_are_refused(settings, message):
    with pytest.raises(CoreError, match=f"--cache-config=redis: {message}") as error:
        open_cache({"redis": settings})
    assert error.value.kind is Kind.INVALID


def test_without_its_client_the_redis_cache_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "redis.asyncio", None)

    with pytest.raises(CoreError, match=r"pip install core\[redis\]"):
        open_cache({"redis": {"host": "r"}})


def test_the_cache_of_the_manual_keeps_what_it_is_given():
    page = (Path(__file__).parents[3] / "docs" / "cache.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], names)

    cache = names["core_open_cache"]("dictionary", {})
    cache.insert(b"k", [Tensor.of("y", np.arange(3))])

    found = []
    cache.ask(b"k", found.append)
    cache.ask(b"other", found.append)
    assert found[0][0].array.tolist() == [0, 1, 2]
    assert found[1] is None
