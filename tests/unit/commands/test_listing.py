"""The commands that other distributions bring, where these are not installed."""

import pytest

from core import plugins
from frontends.commands import listing


@pytest.fixture
def bare(monkeypatch):
    """No other distribution is installed."""
    monkeypatch.setattr(listing, "is_installed", lambda distribution: False)


def test_every_command_of_another_distribution_is_an_extra_of_commands(bare):
    brought = {
        name
        for name, plugin in plugins.available_commands().items()
        if plugin.distribution.split()[0] != "core"
    }

    assert set(listing.missing_commands()) == brought


def test_an_installed_command_is_not_missing():
    assert listing.missing_commands() == []


@pytest.mark.parametrize("name", ["openai", "jobs", "testing", "decrypt"])
def test_an_extra_that_is_no_command_is_not_said_to_be_one(bare, name):
    assert listing._unknown(name).startswith(f"no command named '{name}'")
