"""Failure: classify the errors of the libraries, and describe them for the operator.

    exception ─► [failure_of] ─► Failure ─► StoreError.  Pure functions.

The classification uses Python's types, names of types, and the status of a response, so that this module
imports none of the libraries.
"""

from __future__ import annotations

import enum
import errno
from collections.abc import Iterator

from core_cloud.address import Place
from core_cloud.credentials import source_of


class Failure(enum.Enum):
    """Kind of a failure. Only TRANSIENT failures are retried.

    LOCAL is a failure of this machine, such as a full disk.
    """

    MISSING = "missing"
    DENIED = "denied"
    NO_CREDENTIALS = "no credentials"
    TRANSIENT = "transient"
    LOCAL = "local"
    OTHER = "other"


class StoreError(OSError):
    """Error of an access to a place. The text names the URL, the attempted operation and what to do.

    It is an OSError, as core.repository.Repository requires.
    """

    def __init__(self, text: str, failure: Failure):
        super().__init__(text)
        self.failure = failure


class Incomplete(Exception):
    """The fetched content does not match the listing."""


class Abandoned(Exception):
    """The transfer was stopped because the server stops."""


_NO_CREDENTIALS = {
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "DefaultCredentialsError",
    "CredentialUnavailableError",
}
_DENIED = {
    "ClientAuthenticationError",
    "CredentialRetrievalError",
    "GoogleAuthError",
    "MalformedError",
    "RefreshError",
    "TokenRetrievalError",
    "PermissionError",
}
_MISSING = {"FileNotFoundError", "ResourceNotFoundError", "NotADirectoryError"}
_TRANSIENT = {
    "ConnectionError",
    "TimeoutError",
    "ClientConnectionError",  # of aiohttp
    "ClientPayloadError",
    "HTTPClientError",  # of botocore
    "FlexibleChecksumError",
    "IncompleteReadError",
    "ResponseParserError",
    "ServiceRequestError",  # of azure
    "ServiceResponseError",
    "HttpResponseError",
    "IncompleteRead",
    "ChunkedEncodingError",  # of requests
    "ProxyError",
    "TransportError",  # of google.auth
    "ChecksumError",
    "Incomplete",
    "gaierror",
    "SSHException",
}
_LOCAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE}
_LONGEST = 400  # characters of a library's error text
_NETWORK = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}


def failure_of(error: BaseException) -> Failure:
    """Return the kind of an exception; if that is OTHER, of the first in its chain of causes that is not.

    OTHER if all are.
    """
    kinds = map(_kind, _chain(error))
    return next((kind for kind in kinds if kind is not Failure.OTHER), Failure.OTHER)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _kind(error: BaseException) -> Failure:
    names = {each.__name__ for each in type(error).__mro__}
    if names & _NO_CREDENTIALS:
        return Failure.NO_CREDENTIALS
    if status := _status(error):
        return _of_status(status)
    if names & _DENIED or str(error).startswith("Forbidden"):
        return Failure.DENIED
    if names & _MISSING:
        return Failure.MISSING
    number = error.errno if isinstance(error, OSError) else None
    if number in _LOCAL:
        return Failure.LOCAL
    if names & _TRANSIENT or number in _NETWORK:
        return Failure.TRANSIENT
    return Failure.OTHER


def _status(error: BaseException) -> int:
    """Return the HTTP status in an exception of a library for a store; 0 if it has none."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # of botocore
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return found if isinstance(found, int) else 0
    for name in ("status_code", "status", "code"):
        found = getattr(error, name, None)
        if isinstance(found, int) or (isinstance(found, str) and found.isdecimal()):
            return int(found)
    return 0


def _of_status(status: int) -> Failure:
    if status in (401, 403):
        return Failure.DENIED
    if status == 404:
        return Failure.MISSING
    if status in (408, 429) or status >= 500:
        return Failure.TRANSIENT
    return Failure.OTHER


def described(
    place: Place, what: str, error: BaseException, attempts: int, anonymous: bool = False
) -> StoreError:
    """Return a StoreError that describes an exception, with the operation, the attempts and advice.

    what        the attempted operation, such as "list its objects"
    attempts    number of attempts that failed
    anonymous   True if the requests had no credentials
    """
    failure = failure_of(error)
    tries = f" ({attempts} attempts)" if attempts > 1 else ""
    return StoreError(
        f"model repository '{place.shown}': cannot {what}{tries}: {_words(error)}; "
        f"{_advice(place, failure, anonymous)}",
        failure,
    )


def _words(error: BaseException) -> str:
    """Return type and text of the outermost and the innermost exception that have a text, with ← between.

    They are searched in the chain of causes; without any text, return the type of `error`.
    """
    texts = [
        f"{type(each).__name__}: {text[:_LONGEST]}"
        for each in _chain(error)
        if (text := " ".join(str(each).split()))
    ]
    return " ← ".join(dict.fromkeys(texts[:1] + texts[-1:])) or type(error).__name__


def _advice(place: Place, failure: Failure, anonymous: bool) -> str:
    bucket = f"{'container' if place.scheme == 'as' else 'bucket'} '{place.bucket}'"
    where = place.endpoint or (f"account '{place.account}'" if place.account else "the store")
    if failure is Failure.DENIED and anonymous:
        failure = Failure.NO_CREDENTIALS
    match failure:
        case Failure.MISSING:
            return (
                f"check that {bucket} and the path exist, and that {where} is the one that has them"
            )
        case Failure.NO_CREDENTIALS:
            return f"no credentials were found, and it is not open to everybody: give {source_of(place)}"
        case Failure.DENIED:
            return (
                f"the credentials may not read {bucket}, or are wrong or too old; they come from "
                f"{source_of(place)}"
            )
        case Failure.TRANSIENT:
            return (
                f"check that {where} can be reached from here, and that nothing cuts the connection"
            )
        case Failure.LOCAL:
            return "make room, or let --cloud-cache-directory name a folder with more of it"
        case _:
            return "docs/serve/cloud-repositories.md tells of URLs and credentials"
