"""LogSettings: messages of the real client in and out."""

from types import SimpleNamespace

import pytest
import tritonclient.grpc.service_pb2 as pb

from core.errors import CoreError, Kind
from core.telemetry.log_settings import LogSettings
from frontends.grpc.protocol.messages import LogSettingsRequest
from frontends.grpc.services import settings as service


class LoggingSettings:
    """Keeps settings as the real server does, without a log."""

    def __init__(self):
        self.settings = LogSettings()

    def log_settings(self):
        return self.settings.as_dict()

    async def change_log_settings(self, changes):
        self.settings = self.settings.changed(changes)
        return self.log_settings()


def logging_server():
    return SimpleNamespace(control=SimpleNamespace(settings=LoggingSettings()))


@pytest.fixture
def ask():
    """Send settings, of the kinds of the protocol, to one server; return its settings."""
    server = logging_server()

    async def send(**settings):
        request = pb.LogSettingsRequest()
        for key, fields in settings.items():
            request.settings[key].CopyFrom(pb.LogSettingsRequest.SettingValue(**fields))
        received = LogSettingsRequest.FromString(request.SerializeToString())
        response = await service.log(server, received)
        found = pb.LogSettingsResponse.FromString(response.SerializeToString()).settings
        return {key: (value.WhichOneof("parameter_choice"), value) for key, value in found.items()}

    return send


async def test_each_setting_has_its_kind(ask):
    found = await ask()

    assert {key: kind for key, (kind, _) in found.items()} == {
        "log_file": "string_param",
        "log_info": "bool_param",
        "log_warning": "bool_param",
        "log_error": "bool_param",
        "log_verbose_level": "uint32_param",
        "log_format": "string_param",
    }


async def test_changes_come_back_and_stay(ask):
    await ask(log_info={"bool_param": False}, log_verbose_level={"uint32_param": 3})

    found = await ask(log_format={"string_param": "ISO8601"})

    assert found["log_info"][1].bool_param is False
    assert found["log_verbose_level"][1].uint32_param == 3
    assert found["log_format"][1].string_param == "ISO8601"


async def test_a_setting_without_a_value_changes_nothing(ask):
    assert (await ask(log_info={}))["log_info"][1].bool_param is True


@pytest.mark.parametrize(
    "setting,kind",
    [
        ({"log_info": {"string_param": "yes"}}, Kind.INVALID),
        ({"log_verbose_level": {"bool_param": True}}, Kind.INVALID),
        ({"log_format": {"string_param": "nothing"}}, Kind.UNAVAILABLE),
        ({"log_file": {"string_param": "other.log"}}, Kind.UNSUPPORTED),
        ({"unknown": {"bool_param": True}}, Kind.INVALID),
    ],
)
async def test_a_change_that_cannot_be_is_refused(ask, setting, kind):
    with pytest.raises(CoreError) as caught:
        await ask(**setting)
    assert caught.value.kind is kind
