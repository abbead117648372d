"""Trace settings: their sources, their changes and their form."""

import logging
from dataclasses import replace

import pytest

from core.errors import CoreError, Kind
from core.options import parse
from core.telemetry.tracing.settings import TraceSettings, parsed


def of(*flags):
    return TraceSettings.of(parse(["--model-repository=/m", *flags]))


def test_tracing_is_off_by_default():
    settings = of()

    assert settings == TraceSettings()
    assert not settings.may_trace
    assert settings.as_dict() == {
        "trace_level": ["OFF"],
        "trace_rate": "1000",
        "trace_count": "-1",
        "log_frequency": "0",
        "trace_file": "",
        "trace_mode": "triton",
    }


def test_the_command_line_is_the_beginning():
    settings = of(
        "--trace-config=level=TENSORS",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=rate=5",
        "--trace-config=count=7",
        "--trace-config=triton,file=/tmp/t",
        "--trace-config=triton,log-frequency=3",
    )

    assert settings == TraceSettings(("TIMESTAMPS", "TENSORS"), 5, 7, 3, "/tmp/t")
    assert settings.may_trace


@pytest.mark.parametrize(
    "level,found",
    [
        ("OFF", ()),
        ("timestamps", ("TIMESTAMPS",)),
        ("min", ("TIMESTAMPS",)),
        ("MAX", ("TIMESTAMPS",)),
        ("true", ("TIMESTAMPS",)),
        ("false", ()),
    ],
)
def test_levels_of_the_command_line_have_any_case_and_old_names(level, found):
    assert of(f"--trace-config=level={level}").level == found


@pytest.mark.parametrize("flag", ["count=-2", "rate=-1", "triton,log-frequency=often"])
def test_a_number_of_the_command_line_that_cannot_be_is_refused(flag):
    with pytest.raises(CoreError) as caught:
        of(f"--trace-config={flag}")
    assert caught.value.kind is Kind.INVALID


def test_an_unknown_setting_of_the_command_line_logs_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "core"):
        of("--trace-config=triton,log_frequency=1", "--trace-config=speed=9")

    assert "--trace-config=triton,log_frequency has no effect" in caplog.text
    assert "--trace-config=speed has no effect" in caplog.text


def test_the_settings_of_an_exporter_take_the_place_of_those_of_files():
    settings = of("--trace-config=mode=Spans", "--trace-config=level=TIMESTAMPS")

    settings = replace(settings, shown={"url": "there"})

    assert settings.may_trace
    assert settings.as_dict() == {
        "trace_level": ["TIMESTAMPS"],
        "trace_rate": "1000",
        "trace_count": "-1",
        "trace_mode": "spans",
        "url": "there",
    }


def test_a_rate_of_zero_is_for_the_command_line():
    settings = of("--trace-config=rate=0", "--trace-config=level=TIMESTAMPS")

    assert settings.rate == 0
    with pytest.raises(CoreError) as caught:
        settings.check()
    assert caught.value.message == (
        "Attempting to set invalid trace setting :sample rate must be non-zero"
    )


def test_clients_may_make_no_settings_without_a_file():
    with pytest.raises(CoreError) as caught:
        TraceSettings(level=("TENSORS",)).check()
    assert caught.value.message == (
        "Attempting to set invalid trace setting :trace file name is not given"
    )
    TraceSettings(rate=0).check()  # settings that are off need not be valid


def test_changes_become_values():
    assert parsed(
        {
            "trace_level": ["TENSORS", "TIMESTAMPS"],
            "trace_rate": "3",
            "trace_count": "-1",
            "log_frequency": None,
        }
    ) == {
        "level": ("TIMESTAMPS", "TENSORS"),
        "rate": 3,
        "count": -1,
        "log_frequency": None,
    }


@pytest.mark.parametrize("levels", [["LOUD"], []])
def test_unknown_names_and_levels_have_no_effect(levels):
    assert parsed({"colour": "red", "trace_level": levels}) == {}


def test_an_unknown_level_among_others_is_skipped():
    assert parsed({"trace_level": ["LOUD", "TENSORS"]}) == {"level": ("TENSORS",)}


@pytest.mark.parametrize(
    "changes,text",
    [
        ({"trace_rate": "many"}, "Unable to parse 'trace_rate', got: many"),
        ({"trace_rate": "-1"}, "Unable to parse 'trace_rate', value is out of range [ 0, "),
        ({"trace_rate": 3}, "expect a string for 'trace_rate'"),
        ({"trace_rate": {}}, "expect a string for 'trace_rate'"),
        ({"trace_count": "-5x"}, "Unable to parse 'trace_count', got: -5x"),
        (
            {"trace_count": "-2"},
            "Unable to parse 'trace_count'. Expecting value >= -1, got:-2",
        ),
        ({"trace_count": "9" * 15}, "Unable to parse 'trace_count', value is out of range"),
        ({"log_frequency": ""}, "Unable to parse 'log_frequency'"),
        ({"trace_level": "TIMESTAMPS"}, "expect a list of strings for 'trace_level'"),
        ({"trace_level": [1]}, "expect a list of strings for 'trace_level'"),
        (
            {"trace_level": ["OFF", "TENSORS"]},
            "Expect only one trace level 'OFF' is specified",
        ),
    ],
)
def test_a_change_that_cannot_be_is_refused(changes, text):
    with pytest.raises(CoreError) as caught:
        parsed(changes)
    assert caught.value.kind is Kind.INVALID
    assert text in caught.value.message


@pytest.mark.parametrize("file", ["/tmp/other", None])
def test_no_client_moves_the_trace_file(file):
    with pytest.raises(CoreError) as caught:
        parsed({"trace_file": file})
    assert caught.value.kind is Kind.UNSUPPORTED
    assert caught.value.message == "trace file location can not be updated through network protocol"
