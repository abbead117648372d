"""Options that must agree, and flags of older servers."""

import pytest

from core import options, plugins
from core.errors import CoreError, Kind
from core.options import Options, UsageError, check_server, idle_flags


def parse(arguments, **more):
    return options.parse(arguments, plugins.flags(), **more)


def refused(*arguments):
    with pytest.raises(UsageError) as error:
        parse(arguments)
    return str(error.value)


def test_models_are_named_for_explicit_control_only():
    assert refused("--load-model=a") == (
        "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."
    )
    assert parse(
        ["--load-model=b", "--load-model=a", "--model-control-mode=explicit"]
    ).load_model == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("flags", "services"),
    [
        (("--http-port=7", "--grpc-port=7"), "HTTP requests and GRPC requests"),
        (("--http-port=7", "--metrics-port=7"), "HTTP requests and metrics requests"),
        (("--grpc-port=7", "--metrics-port=7"), "GRPC requests and metrics requests"),
    ],
)
def test_two_services_cannot_share_an_address(flags, services):
    assert refused(*flags) == (
        f"The server cannot listen to {services} at the same address and port 0.0.0.0:7"
    )


def test_services_may_share_a_port_on_other_addresses_or_when_one_is_off():
    assert parse(["--http-port=7", "--grpc-port=7", "--grpc-address=127.0.0.1"])
    assert parse(["--http-port=7", "--grpc-port=7", "--allow-grpc=false"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "--model-repository must be specified"),
        ({"load_model": ["*", "a"], "model_repository": ["x"]}, "must be the ONLY startup model"),
        (
            {"cache_config": {"local": {}, "redis": {}}, "model_repository": ["x"]},
            "only a single cache",
        ),
        (
            {"host_policy": {"gpu_0": {"color": "red"}}, "model_repository": ["x"]},
            "Unsupported host policy setting 'color'",
        ),
    ],
)
def test_no_server_is_made_from_these(changes, text):
    with pytest.raises(CoreError, match=text.replace("*", r"\*")) as error:
        check_server(Options.defaults(**changes))
    assert error.value.kind is Kind.INVALID


def test_a_flag_without_effect_is_named_when_it_was_changed():
    found = parse(["--http-thread-count=4", "--cache-directory=x", "--http-port=1"])
    assert [flag.name for flag in idle_flags(found)] == ["cache-directory", "http-thread-count"]
    assert idle_flags(parse([])) == []


def test_triton_flags_of_a_plugin_that_is_not_installed_are_accepted():
    found = options.parse(["--model-repository=/m", "--allow-gpu-metrics=false"])

    assert [flag.name for flag in idle_flags(found)] == ["allow-gpu-metrics"]


@pytest.mark.parametrize(
    ("old", "field", "value"),
    [
        ("--strict-model-config=true", "disable_auto_complete_config", True),
        ("--strict-model-config=false", "disable_auto_complete_config", False),
        ("--response-cache-byte-size=10", "cache_config", {"local": {"size": "10"}}),
        ("--response-cache-byte-size=0", "cache_config", {}),
        ("--trace-file=x", "trace_config", {"triton": [("file", "x")]}),
        ("--trace-level=OFF", "trace_config", {"": [("level", "OFF")]}),
        ("--trace-log-frequency=5", "trace_config", {"triton": [("log-frequency", "5")]}),
    ],
)
def test_an_old_flag_keeps_its_meaning_and_logs_a_warning(old, field, value):
    said = []

    found = parse([old], warn=said.append)

    assert getattr(found, field) == value
    assert len(said) == 1
    assert said[0].startswith(f"Warning: '{old.partition('=')[0]}' has been deprecated")


def test_an_old_flag_is_checked_as_before():
    with pytest.raises(UsageError, match="invalid value for bool option: x"):
        parse(["--strict-model-config=x"], warn=lambda text: None)
