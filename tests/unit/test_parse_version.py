"""Version numbers as clients write them."""

import pytest

from core.config.model_version import parse_version
from core.errors import CoreError, Kind
from core.request import NEWEST


def test_no_version_means_the_newest():
    assert parse_version("") == NEWEST


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("+7", 7), ("0", 0), ("9223372036854775807", 2**63 - 1)]
)
def test_a_number_is_accepted_unchanged(text, number):
    assert parse_version(text) == number


@pytest.mark.parametrize(
    "text", ["one", "1x", " 1", "1.0", "٣", "--1", "9223372036854775808", "9" * 30, "9" * 5000]
)
def test_a_number_beyond_64_bits_is_refused(text):
    with pytest.raises(CoreError) as error:
        parse_version(text)

    assert error.value.kind is Kind.INVALID
    assert error.value.message == (
        f"failed to get model version from specified version string '{text}' (details: stol), "
        "version should be an integral value > 0"
    )


@pytest.mark.parametrize("text", ["-1", "-2", "-9223372036854775807"])
def test_a_negative_number_is_refused(text):
    with pytest.raises(CoreError) as error:
        parse_version(text)

    assert error.value.message == (
        f"invalid model version specified '{text}' , version should be an integral value > 0"
    )
