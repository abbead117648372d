"""Place: the location that a URL of --model-repository names. Pure functions.

The forms of s3://, gs:// and as:// are Triton's. fsspec parses all other URLs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.errors import invalid

_HOST_AND_PORT = re.compile(r"([0-9A-Za-z.\-_]+|\[[0-9A-Fa-f:.]+\]):([0-9]+)/(.*)")
_AZURE = ".blob.core.windows.net"
_FORMS = {
    "s3": "s3://bucket/path, s3://host:port/bucket/path or s3://https://host:port/bucket/path",
    "gs": "gs://bucket/path",
    "as": "as://account/container/path or as://https://host:port/account/container/path",
}


@dataclass(frozen=True)
class Place:
    """A bucket, or a path in it.

    url        value of --model-repository; the key for credentials
    scheme     s3, gs, as, or the protocol of another file system
    root       bucket and path without slashes at the ends; "" if only fsspec knows them
    endpoint   scheme, host and port of a server that is not the cloud's own; "" for the cloud's
    account    account of Azure, "" elsewhere
    """

    url: str
    scheme: str
    root: str = ""
    endpoint: str = ""
    account: str = ""

    @property
    def bucket(self) -> str:
        """Return the bucket of the path; in Azure the container."""
        return self.root.partition("/")[0]

    @property
    def shown(self) -> str:
        """Return the URL without a password, for logs and errors."""
        return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:…@", self.url)


def place_of(url: str) -> Place:
    """Return the place that a URL names. Raises CoreError(INVALID) for a URL without a bucket."""
    scheme, _, rest = url.partition("://")
    match scheme:
        case "s3":
            return _s3(url, rest)
        case "gs":
            return _checked(Place(url, "gs", _clean(rest)))
        case "as":
            return _azure(url, rest)
        case _:
            return Place(url, scheme)


def _s3(url: str, rest: str) -> Place:
    protocol, slashes, behind = rest.partition("://")
    if slashes and protocol in ("http", "https"):
        host, _, root = behind.strip("/").partition("/")
        return _checked(Place(url, "s3", _clean(root), f"{protocol}://{host}"))
    if found := _HOST_AND_PORT.fullmatch(rest.lstrip("/")):
        host, port, root = found.groups()
        return _checked(Place(url, "s3", _clean(root), f"http://{host}:{port}"))
    return _checked(Place(url, "s3", _clean(rest)))


def _azure(url: str, rest: str) -> Place:
    if "?" in rest:
        raise invalid(
            f"model repository '{url.partition('?')[0]}?…': a URL of as:// has no query, and whatever is in "
            "a URL is shown in logs; give a SAS token as AZURE_STORAGE_SAS_TOKEN"
        )
    protocol, slashes, behind = rest.partition("://")
    endpoint = ""
    if slashes and protocol in ("http", "https"):
        host, _, rest = behind.strip("/").partition("/")
        endpoint = f"{protocol}://{host}"
    account, _, root = rest.strip("/").partition("/")
    if not account:
        raise _bad(url, "as")
    return _checked(Place(url, "as", _clean(root), endpoint, account.removesuffix(_AZURE)))


def _clean(path: str) -> str:
    return "/".join(part for part in path.split("/") if part)


def _checked(place: Place) -> Place:
    if not place.bucket:
        raise _bad(place.url, place.scheme)
    return place


def _bad(url: str, scheme: str) -> Exception:
    what = "container" if scheme == "as" else "bucket"
    return invalid(f"model repository '{url}' names no {what}; it has the form {_FORMS[scheme]}")
