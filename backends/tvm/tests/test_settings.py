"""Parameters in config.pbtxt."""

import pytest
from backend_tvm.settings import Settings, settings_of

from core.config import parse_text
from core.errors import CoreError


def of(**parameters):
    text = "".join(
        f" parameters {{ key: '{name}' value {{ string_value: '{value}' }} }}"
        for name, value in parameters.items()
    )
    return settings_of(parse_text(f'name: "m" {text}', "config.pbtxt"))


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, Settings()),
        ({"function": "encode"}, Settings(function="encode")),
        ({"inputs": "a, b"}, Settings(inputs=("a", "b"))),
        ({"outputs": "y"}, Settings(outputs=("y",))),
        ({"threads": "3"}, Settings(threads=3)),
        ({"allocator": "naive"}, Settings(allocator="naive")),
    ],
)
def test_values(parameters, expected):
    assert of(**parameters) == expected


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("inputs", "a,,b", "different names with commas"),
        ("outputs", "a,a", "different names with commas"),
        ("threads", "0", "a whole number from 1 to"),
        ("threads", "-1", "a whole number from 1 to"),
        ("threads", "9" * 12, "a whole number from 1 to"),
        ("allocator", "none", "pooled or naive, got none"),
    ],
)
def test_wrong_values_are_errors_with_what_is_expected(name, value, text):
    with pytest.raises(CoreError, match=f"model 'm': expected the parameter '{name}' to be {text}"):
        of(**{name: value})
