"""Which changes of the log's settings can be."""

import pytest

from core.errors import CoreError, Kind
from core.options import Options
from core.telemetry.log_settings import LogSettings


def refusal(kind, **changes):
    with pytest.raises(CoreError) as caught:
        LogSettings().changed(changes)
    assert caught.value.kind is kind
    return caught.value.message


def test_the_command_line_comes_first():
    options = Options.defaults(
        log_file="a.log", log_verbose=3, log_info=False, log_error=False, log_format="ISO8601"
    )
    assert LogSettings.of(options).as_dict() == {
        "log_file": "a.log",
        "log_info": False,
        "log_warning": True,
        "log_error": False,
        "log_verbose_level": 3,
        "log_format": "ISO8601",
    }


def test_only_named_settings_change():
    before = LogSettings(log_warning=False)

    after = before.changed({"log_verbose_level": 2**32 - 1, "log_info": None, "log_file": None})

    assert after == LogSettings(log_warning=False, log_verbose_level=2**32 - 1)
    assert before.log_verbose_level == 0


@pytest.mark.parametrize("key", ["log_info", "log_warning", "log_error"])
@pytest.mark.parametrize("value", ["yes", "true", 1, 0, [], {}])
def test_a_switch_is_a_boolean(key, value):
    assert refusal(Kind.INVALID, **{key: value}).startswith(f"expect boolean for '{key}'")


@pytest.mark.parametrize("value", ["1", -1, 1.0, True, 2**32, [1]])
def test_the_level_is_an_unsigned_integer(value):
    assert "expect unsigned integer" in refusal(Kind.INVALID, log_verbose_level=value)


def test_there_are_two_formats():
    assert (
        refusal(Kind.UNAVAILABLE, log_format="iso8601")
        == "invalid argument for --log_format, got: iso8601"
    )
    assert "expect string" in refusal(Kind.INVALID, log_format=1)


@pytest.mark.parametrize("value", ["", "other.log", 1])
def test_the_file_stays(value):
    assert (
        refusal(Kind.UNSUPPORTED, log_file=value)
        == "log file location can not be updated through network protocol"
    )


def test_an_unknown_setting_is_refused_with_those_that_there_are():
    text = refusal(Kind.INVALID, log_infos=True)
    assert "'log_infos'" in text
    assert "log_verbose_level" in text
