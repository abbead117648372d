"""Which model a name in a path is."""

import asyncio
from types import SimpleNamespace

import pytest

from core.errors import CoreError
from frontends.http.names import as_known, name_to_load, with_model


class Listed:
    """The repositories of a server; counts how often they are listed."""

    def __init__(self, *names, error=None):
        self.looks = 0
        self._names = set(names)
        self._error = error

    async def listed(self):
        self.looks += 1
        if self._error is not None:
            raise self._error
        return self._names


def server(*known, listed=(), mode="explicit", error=None):
    """A server that has these models, and others in its repositories."""
    return SimpleNamespace(
        models=SimpleNamespace(knows=set(known).__contains__),
        manager=Listed(*listed, error=error),
        options=SimpleNamespace(model_control_mode=mode),
    )


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("a b", ["a b"], "a b"),
        ("a%20b", ["a b"], "a b"),
        ("a%20b", ["a b", "a%20b"], "a%20b"),
        ("modell_%C3%BC", ["modell_ü"], "modell_ü"),
        ("a%2520b", ["a%20b"], "a%20b"),
        ("a%2520b", ["a b"], "a%2520b"),  # decoded once
        ("a+b", ["a b"], "a+b"),
        ("a%20b", [], "a%20b"),
        ("a%FFb", ["a\ufffdb"], "a%FFb"),  # no UTF-8
        ("100%", ["100%"], "100%"),
        ("100%", ["100"], "100%"),
    ],
)
def test_a_name_that_no_model_has_is_decoded_once(name, known, found):
    assert as_known(name, set(known).__contains__) == found
    captures = with_model(server(*known), {"model": name, "version": "1"}, "inference")
    assert captures == {"model": found, "version": "1"}


def test_paths_do_not_lead_elsewhere():
    captures = with_model(server("m"), {"model": "%2e%2e%2Fm", "version": None}, "inference")

    assert captures["model"] == "%2e%2e%2Fm"


@pytest.mark.parametrize(
    ("name", "found"),
    [("c%20d", "c d"), ("a%20b", "a%20b"), ("e%20f", "e f"), ("g%20h", "g%20h"), ("m", "m")],
)
def test_a_load_request_finds_models_in_the_repositories(name, found):
    has = server("a b", "e f", listed=["a b", "c d", "a%20b"])

    assert with_model(has, {"model": name}, "model-repository")["model"] == name
    assert asyncio.run(name_to_load(has, name)) == found


@pytest.mark.parametrize(("name", "mode"), [("m", "explicit"), ("%6d", "none"), ("%6d", "poll")])
def test_the_repositories_are_listed_only_for_a_request_that_may_need_it(name, mode):
    has = server("m", mode=mode)

    assert asyncio.run(name_to_load(has, name)) == name
    assert has.manager.looks == 0


def test_repositories_that_cannot_be_read_are_an_error():
    has = server(error=OSError("no such folder"))

    with pytest.raises(CoreError, match="failed to read the model repository: no such folder"):
        asyncio.run(name_to_load(has, "%6d"))


def test_routes_without_a_model_are_unchanged():
    assert with_model(server(), {"kind": "system"}, "shared-memory") == {"kind": "system"}
    assert with_model(server(), {"model": None}, "trace") == {"model": None}
