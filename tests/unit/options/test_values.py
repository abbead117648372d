"""Flags whose values have parts."""

import pytest

from core import plugins
from core.options import UsageError, parse


def parsed(*arguments):
    return parse(arguments, plugins.flags(), warn=lambda text: None)


def refused(*arguments):
    with pytest.raises(UsageError) as error:
        parsed(*arguments)
    return str(error.value)


def test_backend_settings_are_kept_by_backend():
    options = parsed(
        "--backend-config=python,a=1", "--backend-config=python,b=x,y=z", "--backend-config=c=4"
    )
    assert options.backend_config == {"python": {"a": "1", "b": "x,y=z"}, "": {"c": "4"}}


def test_a_backend_setting_without_a_backend_is_for_all_and_one_with_an_empty_name_is_refused():
    assert refused("--backend-config=,b=c").endswith(
        "No backend specified. --backend-config option format is "
        "<backend name>,<setting>=<value> or <setting>=<value>. Got ,b=c"
    )


@pytest.mark.parametrize("text", ["a", "a,b", "a,=c", "a,b="])
def test_a_setting_without_name_or_value_is_refused(text):
    assert refused(f"--backend-config={text}").endswith(
        f"--backend-config option format is '<backend name>,<setting>=<value>'. Got {text}"
    )


def test_a_cache_setting_needs_the_cache():
    assert parsed("--cache-config=local,size=1").cache_config == {"local": {"size": "1"}}
    assert refused("--cache-config=size=1").endswith(
        "No cache specified. --cache-config option format is "
        "<cache name>,<setting>=<value>. Got size=1"
    )


def test_metrics_settings_are_kept_by_name():
    options = parsed(
        "--metrics-config=counter_latencies=false",
        "--metrics-config=summary_quantiles=0.5:0.05,0.9:0.01",
    )
    assert options.metrics_config == {
        "counter_latencies": "false",
        "summary_quantiles": "0.5:0.05,0.9:0.01",
    }
    assert refused("--metrics-config=foo").endswith(
        "--metrics-config option format is <setting>=<value>. Got foo"
    )


def test_trace_settings_are_kept_by_mode_in_order():
    options = parsed(
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=level=TENSORS",
        "--trace-config=triton,file=/tmp/x",
    )
    assert options.trace_config == {
        "": [("level", "TIMESTAMPS"), ("level", "TENSORS")],
        "triton": [("file", "/tmp/x")],
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("level=FOO", "invalid value for trace level option: foo"),
        ("rate=abc", "Invalid option value. Got abc"),
        ("triton,file=", "option format is '<trace mode>,<setting>=<value>'"),
    ],
)
def test_a_trace_setting_that_cannot_be_is_refused(text, reason):
    assert reason in refused(f"--trace-config={text}")


def test_restricted_categories_have_a_header_each():
    options = parsed(
        "--http-restricted-api=health,model-repository:key=a=b",
        "--http-restricted-api=inference:other=c",
    )
    assert options.value("http_restricted_api") == {
        "health": ("key", "a=b"),
        "model-repository": ("key", "a=b"),
        "inference": ("other", "c"),
    }


@pytest.mark.parametrize("text", ["health", "health:a", ":a=b", "health:=b"])
def test_a_restriction_without_its_parts_is_refused(text):
    assert refused(f"--http-restricted-api={text}").endswith(
        f"option format is '<config name>:<setting>=<value>'. Got {text}"
    )


def test_an_unknown_category_is_refused_by_name():
    assert "unknown restricted api 'foo'" in refused("--http-restricted-api=health,foo:a=b")
    assert "unknown restricted protocol 'foo'" in refused("--grpc-restricted-protocol=foo:a=b")


def test_a_category_is_restricted_once():
    text = refused("--http-restricted-api=health:a=b", "--http-restricted-api=health:a=c")
    assert "restricted api 'health' can not be specified in multiple config groups" in text


def test_resources_are_of_one_device_or_of_each_and_their_names_have_no_case():
    options = parsed("--rate-limit-resource=R1:10:0", "--rate-limit-resource=r1:5")
    assert options.rate_limit_resource == {"r1": {0: 10, -1: 5}}
    assert "'<resource_name>:<count>'. Got r" in refused("--rate-limit-resource=r")


def test_memory_of_a_device_is_given_once_for_each():
    options = parsed("--cuda-memory-pool-byte-size=0:1", "--cuda-memory-pool-byte-size=0:2")
    assert options.value("cuda_memory_pool_byte_size") == {0: 2}
    assert "requires format <first>:<second>. Found: 0" in refused("--model-load-gpu-limit=0")
