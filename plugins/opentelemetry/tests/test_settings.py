"""Where spans go: settings of mode opentelemetry."""

import logging

import pytest
from core_opentelemetry.settings import ExportSettings

from core.errors import CoreError, Kind


def of(*given, **environment):
    return ExportSettings.of(given, environment)


def test_without_settings_they_are_those_of_triton():
    found = of()

    assert found.resource == {"service.name": "triton-inference-server"}
    assert (found.queue_size, found.delay_ms, found.batch_size) == (2048, 5000, 512)
    assert found.url == ""
    assert found.shown == {
        "bsp_max_queue_size": "2048",
        "bsp_schedule_delay": "5000",
        "bsp_max_export_batch_size": "512",
    }


def test_resources_add_up():
    found = of(("resource", "a=b=c"), ("resource", "service.name=mine"))

    assert found.resource == {"service.name": "mine", "a": "b=c"}
    assert found.shown["resource"] == "a=b=c,service.name=mine"


@pytest.mark.parametrize(
    "url,found",
    [
        ("https://there/v1/traces", "https://there/v1/traces"),
        ("there:4318/v1/traces", "http://there:4318/v1/traces"),
    ],
)
def test_a_url_without_a_scheme_is_one_of_http(url, found):
    assert of(("url", url)).url == found
    assert of(("url", url)).shown["url"] == url


def test_the_environment_applies_without_an_option():
    environment = {"OTEL_BSP_MAX_QUEUE_SIZE": "9", "OTEL_BSP_SCHEDULE_DELAY": "8"}

    found = of(("bsp_schedule_delay", "7"), **environment)

    assert (found.queue_size, found.delay_ms) == (9, 7)
    assert found.shown["bsp_max_queue_size"] == "9"


def test_a_batch_is_no_larger_than_the_queue():
    assert of(("bsp_max_queue_size", "5")).batch_size == 5


def test_an_unknown_name_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "core"):
        of(("speed", "9"))

    assert "--trace-config=opentelemetry,speed has no effect" in caplog.text


@pytest.mark.parametrize(
    "given,text",
    [
        (("resource", "alone"), "expected <key>=<value>, such as service.name=models"),
        (("resource", "=value"), "expected <key>=<value>"),
        (("bsp_max_queue_size", "0"), "opentelemetry,bsp_max_queue_size: expected a whole number"),
        (("bsp_schedule_delay", "-1"), "found '-1'"),
        (("bsp_max_export_batch_size", "many"), "found 'many'"),
        (("bsp_schedule_delay", "9" * 12), "from 1 to 4294967295"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(given, text):
    with pytest.raises(CoreError) as caught:
        of(given)
    assert caught.value.kind is Kind.INVALID
    assert text in caught.value.message


def test_a_variable_of_the_environment_is_named():
    with pytest.raises(CoreError) as caught:
        of(OTEL_BSP_SCHEDULE_DELAY="soon")
    assert "OTEL_BSP_SCHEDULE_DELAY: expected a whole number" in caught.value.message
