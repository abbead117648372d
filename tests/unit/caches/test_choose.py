"""The choice of a cache by its option, and the settings of the existing caches."""

import re
from pathlib import Path

import numpy as np
import pytest

import core
from core import plugins
from core.caches import Cache, open_cache
from core.caches.local import local_cache
from core.errors import CoreError
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


def test_an_unknown_cache_is_refused(plugin):
    with pytest.raises(
        CoreError, match=r"no cache named 'other'.* try --cache-config=local,size=N"
    ):
        open_cache({"other": {"a": "b"}})


def test_the_cache_of_the_manual_keeps_its_entries():
    page = (Path(__file__).parents[3] / "docs" / "serve" / "cache.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], names)

    cache = names["core_open_cache"]("dictionary", {})
    cache.insert(b"k", [Tensor.of("y", np.arange(3))])

    found = []
    cache.ask(b"k", found.append)
    cache.ask(b"other", found.append)
    assert found[0][0].array.tolist() == [0, 1, 2]
    assert found[1] is None


def test_more_settings_of_the_local_cache_name_the_extra_that_has_them():
    hint = r"try --cache-config=local,size=N; try: pip install .* 'core\[response-cache\]'"
    with pytest.raises(CoreError, match=hint):
        local_cache({"size": "1", "ttl": "1"})
    with pytest.raises(CoreError, match=r"size=N$"):
        local_cache({"size": "x"})
    with pytest.raises(CoreError, match=r"size=N$"):
        local_cache({"size": "\u00b2"})  # a digit for Python, and no number
