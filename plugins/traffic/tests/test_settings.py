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
    }

    assert read(written).as_json() == written
    assert read(read(written).as_json()) == read(written)


def test_a_parameter_of_the_configuration_is_the_same_json():
    assert Traffic.parse("m", '{"weights": {"1": 95, "2": 5}}') == read({"weights": W})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "traffic of model 'm' is [], expected an object with weights, sticky, rules"),
        ({}, "traffic of model 'm' needs the field 'weights': 1 to 64 versions with their weights"),
        ({"weights": {}}, "weights is {}, expected 1 to 64 versions with their weights"),
        (
            {"wieghts": W},
            "traffic of model 'm' has no field \"wieghts\"; did you mean 'weights'?; its fields: "
            "weights, sticky, rules",
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
