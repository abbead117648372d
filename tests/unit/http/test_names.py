"""Which model a name in a path is."""

from types import SimpleNamespace

import pytest

from frontends.http.names import as_known, with_model


def server(*known, listed=()):
    """A server that has these models, and others in its repositories."""
    return SimpleNamespace(
        models=SimpleNamespace(knows=set(known).__contains__),
        manager=SimpleNamespace(index=lambda: [{"name": name} for name in listed]),
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


def test_a_load_request_finds_models_in_the_repositories():
    found = server("a b", listed=["a b", "c d", "a%20b"])

    assert with_model(found, {"model": "c%20d"}, "model-repository")["model"] == "c d"
    assert with_model(found, {"model": "a%20b"}, "model-repository")["model"] == "a%20b"
    assert with_model(found, {"model": "a%20b"}, "inference")["model"] == "a b"


def test_routes_without_a_model_are_unchanged():
    assert with_model(server(), {"kind": "system"}, "shared-memory") == {"kind": "system"}
    assert with_model(server(), {"model": None}, "trace") == {"model": None}
