"""The header with a client's timeout."""

import pytest

from core.errors import CoreError, Kind
from frontends.http.codec.timeout import timeout_ns
from frontends.http.message import HttpRequest


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1H", 3600 * 10**9),
        ("2M", 120 * 10**9),
        ("3S", 3 * 10**9),
        ("500m", 500_000_000),
        ("7u", 7000),
        ("9n", 9),
        ("0m", 0),
        ("99999999H", 99_999_999 * 3600 * 10**9),
        (" 1S ", 10**9),
    ],
)
def test_a_time_has_up_to_eight_digits_and_a_unit(text, ns):
    assert timeout_ns({"grpc-timeout": text}) == ns


def test_a_request_without_a_timeout_has_no_deadline():
    assert timeout_ns({}) is None
    assert HttpRequest("POST", "/", {}, {}).deadline_ns == 0


@pytest.mark.parametrize(
    "text",
    ["", "1", "S", "1s", "-1S", "+1S", "1.5S", "1 S", "100000000S", "1SS", "0x1S", "\uff11S"],
)
def test_another_value_is_refused_with_the_expected_ones(text):
    with pytest.raises(CoreError) as error:
        timeout_ns({"grpc-timeout": text})

    assert error.value.kind is Kind.INVALID
    assert error.value.message == (
        f"header grpc-timeout is '{text}', expected one to eight digits and a unit, one of "
        "H, M, S, m, u, n: 500m is half a second"
    )


def test_the_time_begins_when_the_request_comes():
    call = HttpRequest("POST", "/", {}, {"grpc-timeout": "1m"}, came_ns=5)

    assert call.deadline_ns == 5 + 10**6
