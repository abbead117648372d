"""The settings of --cache-config=redis, which the plugin reads when core finds it by its entry point."""

import pytest
from core_redis.settings import redis_cache_settings

from core.caches import open_cache
from core.errors import CoreError, Kind


def test_settings_of_redis_are_those_of_the_original():
    found = redis_cache_settings(
        {"host": "r", "port": "7", "user": "u", "password": "p", "db": "2", "pool_size": "3",
         "connect_timeout": "50", "socket_timeout": "60", "wait_timeout": "70", "ttl": "9", "largest": "5",
         "lookup_timeout": "80", "tls_enabled": "true", "cacert": "ca.pem"}
    )  # fmt: skip

    assert found.connection == {
        "host": "r", "port": 7, "username": "u", "password": "p", "db": 2, "max_connections": 3,
        "socket_connect_timeout": 0.05, "socket_timeout": 0.06, "timeout": 0.07,
        "ssl_ca_certs": "ca.pem",
    }  # fmt: skip
    assert (found.where, found.ttl_s, found.lookup_timeout_s, found.tls) == ("r:7", 9, 0.08, True)
    assert found.largest == 5


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
