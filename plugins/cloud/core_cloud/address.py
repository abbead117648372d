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
    """A bucket in cloud storage, or a path in it.

    url        value of --model-repository; prefixes of it find the credentials
    scheme     s3, gs, as, or the protocol of another file system
    root       bucket and path without slashes at the ends; "" if only fsspec knows them
    endpoint   scheme, host and port of a server that is not the cloud's own; "" for the cloud's
    account    account of Azure, "" for other stores
    """

    url: str
    scheme: str
    root: str = ""
    endpoint: str = ""
    account: str = ""

    @property
    def bucket(self) -> str:
        """Return the bucket, in Azure the container; "" if only fsspec knows it."""
        return self.root.partition("/")[0]

    @property
    def shown(self) -> str:
        """Return the URL with … in place of a password, for logs and errors."""
        return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:…@", self.url)


def place_of(url: str) -> Place:
    """Return the place that a URL names. URLs of other schemes than s3, gs and as are not parsed.

    Raises CoreError(INVALID) for a URL without a bucket or an account, and for one of as:// with a query.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in _FORMS:
        return Place(url, scheme)
    place = _azure(url, rest) if scheme == "as" else _bucket(url, scheme, rest)
    if not place.bucket:
        raise _bad(url, scheme)
    return place


def _bucket(url: str, scheme: str, rest: str) -> Place:
    endpoint = ""
    if scheme == "s3":
        endpoint, rest = _endpoint(rest)
        if not endpoint and (found := _HOST_AND_PORT.fullmatch(rest.lstrip("/"))):
            host, port, rest = found.groups()
            endpoint = f"http://{host}:{port}"
    return Place(url, scheme, _clean(rest), endpoint)


def _azure(url: str, rest: str) -> Place:
    if "?" in rest:
        raise invalid(
            f"model repository '{url.partition('?')[0]}?…': a URL of as:// has no query, and whatever is in "
            "a URL is shown in logs; give a SAS token as AZURE_STORAGE_SAS_TOKEN"
        )
    endpoint, rest = _endpoint(rest)
    account, _, root = rest.strip("/").partition("/")
    if not account:
        raise _bad(url, "as")
    return Place(url, "as", _clean(root), endpoint, account.removesuffix(_AZURE))


def _endpoint(rest: str) -> tuple[str, str]:
    """Split what follows the scheme of a URL into (server, path).

    If it begins with http:// or https://, the server is that with host and port; else "" and the path is all.
    """
    protocol, slashes, behind = rest.partition("://")
    if not slashes or protocol not in ("http", "https"):
        return "", rest
    host, _, path = behind.strip("/").partition("/")
    return f"{protocol}://{host}", path


def _clean(path: str) -> str:
    return "/".join(part for part in path.split("/") if part)


def _bad(url: str, scheme: str) -> Exception:
    what = "container" if scheme == "as" else "bucket"
    return invalid(f"model repository '{url}' names no {what}; it has the form {_FORMS[scheme]}")
