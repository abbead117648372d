"""GET and POST /v2/logging."""

import json
from types import SimpleNamespace

import pytest

from core.errors import CoreError, Kind
from core.telemetry.log_settings import LogSettings
from frontends.http.message import HttpRequest
from frontends.http.services import settings


class LoggingSettings:
    """Keeps settings as the real server does, without a log."""

    def __init__(self):
        self.settings = LogSettings(log_file="server.log")

    def log_settings(self):
        return self.settings.as_dict()

    async def change_log_settings(self, changes):
        self.settings = self.settings.changed(changes)
        return self.log_settings()


def logging_server():
    return SimpleNamespace(control=SimpleNamespace(settings=LoggingSettings()))


DEFAULTS = {
    "log_file": "server.log",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


@pytest.fixture
def ask():
    """Ask one server; the JSON of its answer."""
    server = logging_server()

    async def send(body=None):
        method, service = ("GET", settings.log) if body is None else ("POST", settings.change_log)
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await service(server, HttpRequest(method, "/v2/logging", {}, {}, text))
        assert answer.status == 200
        return json.loads(answer.body)

    return send


async def test_settings_are_read(ask):
    assert await ask() == DEFAULTS


async def test_changes_come_back_and_stay(ask):
    changed = {**DEFAULTS, "log_info": False, "log_verbose_level": 2, "log_format": "ISO8601"}

    assert await ask({"log_info": False, "log_verbose_level": 2, "log_format": "ISO8601"}) == (
        changed
    )
    assert await ask() == changed


async def test_null_has_no_effect(ask):
    assert await ask(dict.fromkeys(DEFAULTS)) == DEFAULTS


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"log_info"', b"1"])
async def test_a_body_that_is_no_object_is_refused(ask, body):
    with pytest.raises(CoreError) as caught:
        await ask(body)
    assert caught.value.kind is Kind.INVALID


async def test_a_change_that_cannot_be_is_refused(ask):
    with pytest.raises(CoreError) as caught:
        await ask({"log_info": False, "log_file": "other.log"})
    assert caught.value.kind is Kind.UNSUPPORTED
    assert await ask() == DEFAULTS
