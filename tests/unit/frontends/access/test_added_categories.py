"""Plugins add categories of requests, which flags and roles then know."""

import pytest

from core.errors import CoreError
from core.options.values import UsageError
from frontends.shared import added_categories
from frontends.shared.access import requirement
from frontends.shared.forms import restricted, some_of


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setattr(added_categories, "_added", {})
    return added_categories.add_category


def test_a_category_has_the_roles_of_its_plugin(added):
    added("reports", reading=("read", "manage"), changing=("manage",))
    added("reports", reading=("manage", "read"), changing=("manage",))

    assert requirement("reports", changes=False).text == "read or manage"
    assert requirement("reports", changes=True).text == "manage"
    with pytest.raises(CoreError, match="two plugins add the category 'reports'"):
        added("reports", reading=("read",), changing=("manage",))
    with pytest.raises(KeyError):
        requirement("absent", changes=False)


def test_flags_take_a_category_from_then_on(added):
    several, closed = some_of(("health",)), restricted("api")
    with pytest.raises(UsageError, match="'reports' is none of health"):
        several.read("auth-open", "reports")
    with pytest.raises(UsageError, match="unknown restricted api 'reports'"):
        closed.read("http-restricted-api", "reports:key=secret")

    added("reports", reading=("read",), changing=("manage",))
    assert several.read("auth-open", "health,reports") == ("health", "reports")
    assert closed.read("http-restricted-api", "reports:key=secret") == {
        "reports": ("key", "secret")
    }
