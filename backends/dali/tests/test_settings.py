"""Parameters in config.pbtxt, and keys of --backend-config."""

import pytest
from backend_dali.settings import Settings, releases, settings_of

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
        ({"num_threads": "3"}, Settings(threads=3)),
        ({"split_along_outer_axis": "A:B"}, Settings(split=("A", "B"))),
    ],
)
def test_values(parameters, expected):
    assert of(**parameters) == expected


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("num_threads", "0", "a whole number from 1 to"),
        ("num_threads", "x", "a whole number from 1 to"),
        ("split_along_outer_axis", "A::B", "different names of outputs with colons"),
        ("split_along_outer_axis", "A:A", "different names of outputs with colons"),
    ],
)
def test_wrong_values_are_errors_with_what_is_expected(name, value, text):
    with pytest.raises(CoreError, match=f"model 'm': expected the parameter '{name}' to be {text}"):
        of(**{name: value})


def test_the_key_of_triton_for_memory():
    assert not releases({})
    assert releases({"release_after_unload": "True"})
    with pytest.raises(CoreError, match="release_after_unload=yes: it must be true or false"):
        releases({"release_after_unload": "yes"})
