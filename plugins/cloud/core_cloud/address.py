"""Place: where a URL of --model-repository points to. Pure functions.

The forms of s3://, gs:// and as:// are Triton's. Any other URL is one of fsspec's, read by fsspec.
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

    url        as --model-repository names it; what credentials are looked up with
    scheme     s3, gs, as, or the protocol of another file system
    root       bucket and path without slashes at the ends; "" if only fsspec can tell
    endpoint   of a server that is not the cloud's own: scheme, host and port; "" for none
    account    Azure's, "" elsewhere
    """

    url: str
    scheme: str
    root: str = ""
    endpoint: str = ""
    account: str = ""

    @property
    def bucket(self) -> str:
        """What the path lies in; the container of Azure."""
        return self.root.partition("/")[0]

    @property
    def shown(self) -> str:
        """The URL without a password, for texts."""
        return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:…@", self.url)


def place_of(url: str) -> Place:
    """Where a URL points to. Raises CoreError(INVALID) for one without a bucket, with the forms."""
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
