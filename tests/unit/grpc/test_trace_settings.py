"""TraceSetting: messages of the real client in and out."""

from types import SimpleNamespace

import pytest
import tritonclient.grpc.service_pb2 as pb

from core.control.settings import SettingsControl
from core.errors import CoreError, Kind
from core.options import Options
from core.telemetry.tracing import Tracer
from frontends.grpc.protocol.messages import TraceSettingRequest
from frontends.grpc.services import settings as service


def tracing_server():
    """Keeps settings as the real server does, and knows every model."""
    tracer = Tracer(Options.defaults(trace_config={"triton": [("file", "/tmp/t")]}))
    settings = SettingsControl(tracer, changeable=True, traceable=lambda model: True)
    return SimpleNamespace(control=SimpleNamespace(settings=settings))


@pytest.fixture
def ask():
    """Send settings, each a list, to one server; return its settings."""
    server = tracing_server()

    async def send(model="", **settings):
        request = pb.TraceSettingRequest(model_name=model)
        for key, values in settings.items():
            request.settings[key].value.extend(values)
            request.settings[key].SetInParent()
        received = TraceSettingRequest.FromString(request.SerializeToString())
        response = await service.trace(server, received)
        found = pb.TraceSettingResponse.FromString(response.SerializeToString()).settings
        return {key: list(setting.value) for key, setting in found.items()}

    return send


async def test_every_setting_is_a_list(ask):
    assert await ask() == {
        "trace_level": ["OFF"],
        "trace_rate": ["1000"],
        "trace_count": ["-1"],
        "log_frequency": ["0"],
        "trace_file": ["/tmp/t"],
        "trace_mode": ["triton"],
    }


async def test_changes_come_back_and_stay(ask):
    await ask(trace_level=["TENSORS", "TIMESTAMPS"], trace_rate=["7"])

    found = await ask()

    assert (found["trace_level"], found["trace_rate"]) == (["TIMESTAMPS", "TENSORS"], ["7"])


async def test_a_model_has_its_own_settings_until_an_empty_list_clears_them(ask):
    await ask("m", trace_rate=["3"])

    assert (await ask("m"))["trace_rate"] == ["3"]
    assert (await ask())["trace_rate"] == ["1000"]
    assert (await ask("m", trace_rate=[]))["trace_rate"] == ["1000"]


@pytest.mark.parametrize(
    "settings,kind,text",
    [
        ({"trace_rate": ["1", "2"]}, Kind.INVALID, "expect only 1 value for 'trace_rate'"),
        ({"trace_count": ["x"]}, Kind.INVALID, "Unable to parse 'trace_count'"),
        ({"trace_file": ["/tmp/x"]}, Kind.UNSUPPORTED, "trace file location can not be updated"),
    ],
)
async def test_a_change_that_cannot_be_is_refused(ask, settings, kind, text):
    with pytest.raises(CoreError) as caught:
        await ask(**settings)
    assert caught.value.kind is kind
    assert text in caught.value.message
