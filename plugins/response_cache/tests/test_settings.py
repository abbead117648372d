"""The settings of --cache-config, as core reads them."""

import asyncio

import pytest
from core_response_cache.coalescing import Coalescing
from core_response_cache.limited import LimitedCache

from core.caches import LocalCache, open_cache
from core.errors import CoreError


def test_a_cache_without_more_settings_is_that_of_core():
    assert type(open_cache({"local": {"size": "1024"}})) is LocalCache


def test_all_settings():
    text = "size=1000 ttl=1.5 largest=100 share=0.25 header=x-user coalesce=true"
    cache = open_cache({"local": dict(each.split("=") for each in text.split())})

    assert isinstance(cache, Coalescing) and isinstance(cache.inner, LimitedCache)
    found = cache.inner.settings
    assert (found.size, found.ttl_s, found.largest) == (1000, 1.5, 100)
    assert (found.share, found.shares, found.header) == (0.25, True, "x-user")


def test_only_what_is_asked_for():
    cache = open_cache({"local": {"size": "1000", "ttl": "60", "coalesce": "false"}})

    assert isinstance(cache, LimitedCache) and not cache.settings.shares


def test_another_cache_coalesces_too():
    pytest.importorskip("core_redis")

    async def opened():
        return open_cache({"redis": {"host": "r", "coalesce": "true"}})

    cache = asyncio.run(opened())
    assert isinstance(cache, Coalescing) and type(cache.inner).__name__ == "RedisCache"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (
            "size=1000 tlt=1",
            "local: no setting 'tlt'; there are size, ttl, largest, share, header, coalesce; did you mean "
            "'ttl'?",
        ),
        ("ttl=1", "local: no size; try --cache-config=local,size=N"),
        ("size=1k ttl=1", "local: size=1k; expected a number of bytes, such as 104857600"),
        (
            "size=1 ttl=-1",
            "local: ttl=-1; expected a number of seconds, such as 60; 0 keeps entries",
        ),
        ("size=1 ttl=inf", "local: ttl=inf; expected a number of seconds"),
        ("size=1 ttl=x", "local: ttl=x; expected a number of seconds"),
        ("size=1 largest=-1", "local: largest=-1; expected a number of bytes"),
        ("size=1 share=0", "local: share=0; expected a number above 0 up to 1, such as 0.25"),
        ("size=1 share=25", "local: share=25; expected a number above 0 up to 1, such as 0.25"),
        ("size=1 share=nan", "local: share=nan; expected a number above 0 up to 1"),
        ("size=1 header=x", "local: header names callers, which only share counts"),
        ("size=1 coalesce=yes", "local: coalesce=yes; expected true or false"),
    ],
)
def test_a_wrong_setting_is_named(settings, error):
    with pytest.raises(CoreError) as caught:
        open_cache({"local": dict(each.split("=") for each in settings.split())})
    assert f"--cache-config={error}" in caught.value.message


def test_a_cache_that_does_not_exist():
    with pytest.raises(CoreError, match="no cache named 'other'"):
        open_cache({"other": {"coalesce": "true"}})
