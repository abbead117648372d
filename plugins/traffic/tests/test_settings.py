"""The settings in JSON: what is read, what is refused and how."""

import pytest
from core_traffic.settings import Traffic

from core.errors import CoreError, Kind
from core.request import InferenceRequest

W = {"1": 95, "2": 5}


def read(value):
    return Traffic.read("m", value)


def test_settings_are_what_was_written():
    written = {
        "weights": {"1": 95, "2": 0.5},
        "sticky": {"header": "x-user"},
        "rules": [
            {"header": "x-tier", "in": ["gold", "silver"], "version": 2},
            {"parameter": "user", "prefix": "test-", "version": 1},
            {"correlation_id": True, "version": 2},
        ],
        "shadow": {
            "version": 3, "share": 0.1, "in_flight": 4, "timeout_ms": 500, "atol": 0.001, "rtol": 0,
            "outputs": {"scores": {"class": True}, "price": {"atol": 0.5, "rtol": 0}},
        },
        "rollback": {"error_rate": 0.05, "p99_ms": 200, "min_requests": 50, "window_s": 5, "to": 1},
    }  # fmt: skip

    assert read(written).as_json() == written
    assert read(read(written).as_json()) == read(written)


def test_a_parameter_of_the_configuration_is_the_same_json():
    assert Traffic.parse("m", '{"weights": {"1": 95, "2": 5}}') == read({"weights": W})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            [],
            "traffic of model 'm' is [], expected an object with weights, sticky, rules, shadow, rollback",
        ),
        ({}, "traffic of model 'm' needs the field 'weights': 1 to 64 versions with their weights"),
        ({"weights": {}}, "weights is {}, expected 1 to 64 versions with their weights"),
        (
            {"wieghts": W},
            "traffic of model 'm' has no field \"wieghts\"; did you mean 'weights'?; its fields: "
            "weights, sticky, rules, shadow, rollback",
        ),
        ({"weights": {"1": 0, "2": 0}}, "weights are all 0: no version would answer"),
        ({"weights": {"1": -1}}, "weights.1 is -1, expected a number from 0 to 1000000"),
        ({"weights": {"1": "95"}}, 'weights.1 is "95", expected a number from 0 to 1000000'),
        ({"weights": {"1": True}}, "weights.1 is true, expected a number"),
        ({"weights": {"1": float("nan")}}, "weights.1 is NaN, expected a number"),
        ({"weights": {"v1": 1}}, 'weights has "v1", expected the number of a version'),
        ({"weights": {"-1": 1}}, 'weights has "-1", expected the number of a version'),
        ({"weights": {"1": 1, "01": 1}}, "weights has version 1 twice"),
        ({"weights": {str(n): 1 for n in range(65)}}, "expected 1 to 64 versions"),
        (
            {"weights": W, "sticky": "header"},
            'sticky is "header", expected an object with header, parameter, correlation_id',
        ),
        (
            {"weights": W, "sticky": {}},
            "sticky needs exactly one of header, parameter, correlation_id",
        ),
        ({"weights": W, "sticky": {"headers": "a"}}, "did you mean 'header'?"),
        (
            {"weights": W, "sticky": {"header": ""}},
            'sticky.header is "", expected a text of 1 to 256 characters',
        ),
        (
            {"weights": W, "sticky": {"correlation_id": 1}},
            "sticky.correlation_id is 1, expected true",
        ),
        ({"weights": W, "rules": {}}, "rules is {}, expected a list of at most 64 rules"),
        (
            {"weights": W, "rules": [{"header": "a", "equals": "b"}]},
            "rules[0] needs the field 'version': the number of a version",
        ),
        (
            {"weights": W, "rules": [{"header": "a", "version": "x"}]},
            'rules[0].version has "x", expected the number of a version',
        ),
        (
            {"weights": W, "rules": [{"header": "a", "equals": "b", "in": ["c"], "version": 1}]},
            "rules[0] has equals and in; a rule has one test or none",
        ),
        (
            {"weights": W, "rules": [{"header": "a", "in": [], "version": 1}]},
            "rules[0].in is [], expected a list of 1 to 1000 values",
        ),
        (
            {"weights": W, "rules": [{"header": "a", "equals": None, "version": 1}]},
            "rules[0].equals is null, expected texts, numbers, true or false",
        ),
        ({"weights": W, "shadow": {}}, "shadow needs the field 'version': the number of a version"),
        (
            {"weights": W, "shadow": {"version": 2, "share": 0}},
            "shadow.share is 0, expected a number above 0, to 1",
        ),
        (
            {"weights": W, "shadow": {"version": 2, "in_flight": 0}},
            "shadow.in_flight is 0, expected a whole number from 1 to 10000",
        ),
        (
            {"weights": W, "shadow": {"version": 2, "outputs": "y"}},
            'shadow.outputs is "y", expected 1 to 256 names, or an object such as',
        ),
        (
            {"weights": W, "shadow": {"version": 2, "outputs": {"y": {"class": True, "atol": 1}}}},
            "shadow.outputs.y has class and a tolerance",
        ),
        ({"weights": W, "rollback": {"to": 1}}, "rollback needs error_rate or p99_ms"),
        (
            {"weights": W, "rollback": {"error_rate": 5}},
            "rollback.error_rate is 5, expected a number from 0 to 1",
        ),
        (
            {"weights": W, "rollback": {"p99_ms": 9, "to": 7}},
            "rollback.to is 7, expected a version among the weights: 1, 2",
        ),
    ],
)
def test_what_is_wrong_is_named(value, text):
    with pytest.raises(CoreError) as caught:
        read(value)

    assert caught.value.kind is Kind.INVALID
    assert caught.value.message.startswith("traffic of model 'm'")
    assert text in caught.value.message


def test_a_parameter_that_is_not_json_is_refused():
    with pytest.raises(CoreError, match=r"model 'm': parameter 'traffic' is not JSON \(.*\): \"95"):
        Traffic.parse("m", "95,5")


@pytest.mark.parametrize(
    ("rule", "parameters", "fits"),
    [
        ({"header": "X-Tier", "equals": "gold"}, {"x-tier": "gold"}, True),
        ({"header": "x-tier", "equals": "gold"}, {"X-Tier": "gold"}, True),
        ({"header": "x-tier", "equals": "gold"}, {"x-tier": "Gold"}, False),
        ({"header": "x-tier"}, {"x-tier": "any"}, True),
        ({"header": "x-tier"}, {"x-tier": ""}, False),
        ({"header": "x-tier"}, {}, False),
        ({"parameter": "tier", "equals": "gold"}, {"Tier": "gold"}, False),
        ({"parameter": "level", "in": [1, 2]}, {"level": 2}, True),
        ({"parameter": "test", "equals": True}, {"test": True}, True),
        ({"parameter": "user", "prefix": "a-"}, {"user": "a-7"}, True),
        ({"parameter": "user", "prefix": "a-"}, {"user": "b-7"}, False),
    ],
)
def test_a_rule_fits_requests_with_its_value(rule, parameters, fits):
    traffic = read({"weights": W, "rules": [{**rule, "version": 2}]})

    assert traffic.rules[0].fits(InferenceRequest("m", {}, parameters=parameters)) is fits


def test_names_of_outputs_have_the_common_tolerance():
    shadow = read({"weights": W, "shadow": {"version": 2, "atol": 0.5, "outputs": ["y"]}}).shadow

    assert shadow.as_json()["outputs"] == {"y": {"atol": 0.5, "rtol": 1e-5}}
