"""GET and POST /v2/trace/setting, of the server and of a model."""

import json
from types import SimpleNamespace

import pytest

from core.control.settings import SettingsControl
from core.errors import CoreError, Kind
from core.options import Options
from core.telemetry.tracing import Tracer
from frontends.http.message import HttpRequest
from frontends.http.services import settings as services


def tracing_server():
    """Keeps settings as the real server does, and knows every model."""
    tracer = Tracer(Options.defaults(trace_config={"triton": [("file", "/tmp/t")]}))
    settings = SettingsControl(tracer, changeable=True, traceable=lambda model: True)
    return SimpleNamespace(control=SimpleNamespace(settings=settings))


@pytest.fixture
def ask():
    """Ask one server; the JSON of its answer."""
    server = tracing_server()

    async def send(body=None, model=None):
        method, service = (
            ("GET", services.trace) if body is None else ("POST", services.change_trace)
        )
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        call = HttpRequest(method, "/v2/trace/setting", {"model": model}, {}, text)
        answer = await service(server, call)
        assert answer.status == 200
        return json.loads(answer.body)

    return send


async def test_settings_are_read(ask):
    assert await ask() == {
        "trace_level": ["OFF"],
        "trace_rate": "1000",
        "trace_count": "-1",
        "log_frequency": "0",
        "trace_file": "/tmp/t",
        "trace_mode": "triton",
    }


async def test_changes_come_back_and_stay(ask):
    changed = await ask({"trace_level": ["TENSORS"], "trace_rate": "7"})

    assert (changed["trace_level"], changed["trace_rate"]) == (["TENSORS"], "7")
    assert await ask() == changed


async def test_a_model_has_its_own_settings_until_they_are_cleared(ask):
    await ask({"trace_rate": "3"}, "m")

    assert (await ask(model="m"))["trace_rate"] == "3"
    assert (await ask())["trace_rate"] == "1000"
    assert (await ask({"trace_rate": None}, "m"))["trace_rate"] == "1000"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"1"])
async def test_a_body_that_is_no_object_is_refused(ask, body):
    with pytest.raises(CoreError) as caught:
        await ask(body)
    assert caught.value.kind is Kind.INVALID


async def test_the_trace_file_stays(ask):
    with pytest.raises(CoreError) as caught:
        await ask({"trace_rate": "3", "trace_file": "/tmp/x"})
    assert caught.value.kind is Kind.UNSUPPORTED
    assert (await ask())["trace_rate"] == "1000"
