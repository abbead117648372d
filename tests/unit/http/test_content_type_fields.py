"""Repeated fields Content-Type: which of them are dropped, and that all other bytes stay."""

import time

import pytest

from frontends.http.content_type_fields import without_repeated

JSON, BINARY = b"Content-Type: application/json", b"content-type:application/octet-stream "


def head(*fields, body=b""):
    return b"\r\n".join([b"POST / HTTP/1.1", b"Host: x", *fields, b"", b""]) + body


@pytest.mark.parametrize("fields", [(JSON, JSON), (JSON, BINARY), (BINARY, JSON, JSON)])
def test_the_first_of_fields_that_say_the_same_stays(fields):
    first, *others = fields
    given = head(first, b"A: b", *others, b"C: d", body=b"{}")
    assert without_repeated(given) == head(first, b"A: b", b"C: d", body=b"{}")


@pytest.mark.parametrize(
    "fields",
    [
        (JSON,),
        (JSON, b"Content-Type: text/plain"),
        (JSON, b"Content-Type: application/json; charset=utf-16"),
        (
            b"Content-Type: multipart/form-data; boundary=a",
            b"Content-Type: multipart/form-data; boundary=A",
        ),
        (JSON, b"X-Content-Type: application/json"),
        (JSON, JSON + b"\r\n folded"),
        (JSON, b"Content-Type : application/json"),
    ],
)
def test_other_fields_stay(fields):
    assert without_repeated(head(*fields)) == head(*fields)


def test_a_body_stays():
    given = head(JSON, body=b"\r\n" + JSON + b"\r\n" + JSON + b"\r\n\r\n")
    assert without_repeated(given) == given


@pytest.mark.parametrize("cut", [1, 2, 3, 10])
def test_a_field_that_does_not_end_yet_stays(cut):
    given = head(JSON, JSON)[:-cut]
    expected = given if cut > 1 else head(JSON)[:-1]
    assert without_repeated(given) == expected


def test_a_field_of_blanks_costs_no_more_than_its_length():
    data = b"POST / HTTP/1.1\r\nContent-Type:" + b" " * 60_000 + b"x\ry"

    begun = time.process_time()
    assert without_repeated(data) == data
    assert time.process_time() - begun < 1.0
