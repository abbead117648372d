"""The classification of errors of the libraries."""

import asyncio
import errno

import pytest
from core_cloud.address import place_of
from core_cloud.failure import Failure, Incomplete, described, failure_of


def made(name, base=Exception, **attributes):
    """Return an exception of a new type `name`, as a library may have one, with these attributes."""
    error = type(name, (base,), {})("text")
    for key, value in attributes.items():
        setattr(error, key, value)
    return error


def of_botocore(status):
    return made("ClientError", response={"ResponseMetadata": {"HTTPStatusCode": status}})


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (FileNotFoundError("x"), Failure.MISSING),
        (made("ResourceNotFoundError", status_code=404), Failure.MISSING),
        (PermissionError("x"), Failure.DENIED),
        (OSError("Forbidden: https://…"), Failure.DENIED),
        (made("HttpError", code=401), Failure.DENIED),
        (made("HttpError", code="403"), Failure.DENIED),
        (made("ClientAuthenticationError"), Failure.DENIED),
        (made("NoCredentialsError"), Failure.NO_CREDENTIALS),
        (ConnectionRefusedError("x"), Failure.TRANSIENT),
        (TimeoutError(), Failure.TRANSIENT),
        (asyncio.TimeoutError(), Failure.TRANSIENT),
        (OSError(errno.EHOSTUNREACH, "x"), Failure.TRANSIENT),
        (Incomplete("x"), Failure.TRANSIENT),
        (made("HttpResponseError", status_code=503), Failure.TRANSIENT),
        (made("HttpError", code=429), Failure.TRANSIENT),
        (caused(OSError(errno.EIO, "x"), of_botocore(500)), Failure.TRANSIENT),
        (caused(OSError(errno.EBUSY, "x"), of_botocore(503)), Failure.TRANSIENT),
        (caused(OSError(errno.EINVAL, "x"), of_botocore(400)), Failure.OTHER),
        (OSError(errno.ENOSPC, "x"), Failure.LOCAL),
        (ValueError("x"), Failure.OTHER),
    ],
    ids=repr,
)
def test_kinds_of_failures(error, failure):
    assert failure_of(error) is failure


def test_errors_that_lead_to_each_other_end():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    assert failure_of(one) is Failure.OTHER


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError("x"), "check that bucket 'b' and the path exist"),
        (PermissionError("x"), "AWS_SECRET_ACCESS_KEY"),
        (ConnectionRefusedError("x"), "check that http://h:1 can be reached"),
        (OSError(errno.ENOSPC, "x"), "--cloud-cache-directory"),
        (ValueError("x"), "docs/serve/cloud-repositories.md"),
    ],
)
def test_an_error_names_the_operation_and_the_advice(error, text):
    told = str(described(place_of("s3://h:1/b/m"), "list its objects", error, 4))

    assert told.startswith(
        "model repository 's3://h:1/b/m': cannot list its objects (4 attempts): "
    )
    assert text in told


def test_an_anonymous_request_is_an_error_about_missing_credentials():
    told = described(place_of("s3://b"), "list", PermissionError("x"), 1, anonymous=True)

    assert "no credentials were found, and it is not open to everybody" in str(told)


def test_a_long_text_of_a_library_is_cut():
    assert len(str(described(place_of("s3://b"), "list", ValueError("x" * 10_000), 1))) < 1000
