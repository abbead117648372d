"""Rules: which sources a client may name. A URL of a client is input like any other, and may be an attack.

Without rules no host and no file is reachable: config.pbtxt must name hosts and folders.
"""

from __future__ import annotations

import fnmatch
import io
import os
import stat
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backend_video.addresses import Network
from core.errors import CoreError, forbidden, invalid, not_found

PORTS = {"http": 80, "https": 443, "rtsp": 554}
SCHEMES = ("file", *PORTS)
_LONGEST = 4096  # characters of a URL


@dataclass(frozen=True)
class Place:
    """A checked URL of a host.

    user, password   decoded; None if the URL has none
    target           path and query, as in the URL; it begins with /
    """

    scheme: str
    host: str
    port: int
    target: str
    user: str | None = None
    password: str | None = None

    @property
    def shown(self) -> str:
        """The URL for errors and the log: without user, password and query."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port}{self.target.partition('?')[0]}"

    @property
    def authority(self) -> str:
        """Host and, unless it is that of the scheme, port."""
        host = _bracketed(self.host)
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True)
class HostRule:
    """A host, or hosts with a * in the name; any port if `port` is 0, that of the scheme if it is None."""

    pattern: str
    port: int | None

    def allows(self, place: Place) -> bool:
        port = PORTS[place.scheme] if self.port is None else self.port
        return port in (0, place.port) and fnmatch.fnmatchcase(place.host, self.pattern)


@dataclass(frozen=True)
class Rules:
    """What a client may name.

    schemes    of URLs
    hosts      that may be connected to; none if empty
    networks   addresses that may be connected to although they are not public
    folders    absolute, without symbolic links; files below them may be read. None if empty
    """

    schemes: tuple[str, ...] = SCHEMES
    hosts: tuple[HostRule, ...] = ()
    networks: tuple[Network, ...] = ()
    folders: tuple[Path, ...] = ()

    def place_of(self, url: str) -> Place:
        """Return the parts of a URL of a host. Raises CoreError: INVALID; FORBIDDEN without a rule for it."""
        place = split_url(url)
        self._check_scheme(place.scheme)
        if not any(each.allows(place) for each in self.hosts):
            raise forbidden(
                f"host '{place.authority}' is not allowed; the parameter 'hosts' of the model's "
                f"config.pbtxt {_listed(self.hosts)}"
            )
        return place

    def open_file(self, url: str) -> io.FileIO:
        """Open the file of a file URL, or of a path relative to a folder of the rules.

        Raises CoreError: FORBIDDEN outside the folders, also by symbolic links; NOT_FOUND; INVALID if it is
        no regular file.
        """
        self._check_scheme("file")
        path = _path_of(url)
        if not self.folders:
            raise forbidden(
                "files are not allowed; the parameter 'folders' of the model's config.pbtxt names none"
            )
        inside = [
            Path(found)
            for folder in self.folders
            if Path(found := os.path.realpath(folder / path)).is_relative_to(folder)
        ]
        if not inside:
            raise forbidden(
                f"file '{path}' is not below a folder that the parameter 'folders' of the model's "
                "config.pbtxt names"
            )
        for each in inside:
            if (file := _opened(each, path)) is not None:
                return file
        raise not_found(f"file '{path}' does not exist")

    def _check_scheme(self, scheme: str) -> None:
        if scheme not in self.schemes:
            raise forbidden(
                f"scheme '{scheme}' is not allowed; the parameter 'schemes' of the model's config.pbtxt "
                f"allows {', '.join(self.schemes) or 'none'}"
            )


def is_file(url: str) -> bool:
    """Return whether a URL names a file: with the scheme `file`, or without a scheme."""
    scheme, colon, _ = url.partition(":")
    return not colon or "/" in scheme or scheme.lower() == "file"


def split_url(url: str) -> Place:
    """Return the parts of a URL of a host. Raises CoreError(INVALID), without the password in its text."""
    if len(url) > _LONGEST:
        raise invalid(f"the URL has {len(url)} characters; it may have {_LONGEST}")
    if any(not 32 < ord(each) < 127 for each in url):
        raise invalid(
            "the URL has a character that is no printable ASCII character; write it as % and its number"
        )
    try:
        parts = urllib.parse.urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError as error:
        raise invalid(f"the URL is not one: {error}") from None
    if scheme not in PORTS:
        raise invalid(f"the URL has the scheme '{scheme}'; it must be one of {', '.join(SCHEMES)}")
    if not host or port == 0 or "\\" in url:
        raise invalid(f"the URL has no host; expected {scheme}://HOST/PATH")
    return Place(
        scheme,
        host.rstrip("."),
        port or PORTS[scheme],
        (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        None if parts.username is None else urllib.parse.unquote(parts.username),
        None if parts.password is None else urllib.parse.unquote(parts.password),
    )


def _path_of(url: str) -> str:
    if len(url) > _LONGEST:
        raise invalid(f"the path has {len(url)} characters; it may have {_LONGEST}")
    path = url
    if url[:5].lower() == "file:":
        path = url[5:]
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost") or not slash:
                raise invalid(f"'{url}' names the host '{host}'; expected file:///PATH")
            path = "/" + rest
        path = urllib.parse.unquote(path)
    if not path or "\0" in path:
        raise invalid("the URL names no file; expected file:///PATH, or a path below a folder")
    return path


def _opened(real: Path, path: str) -> io.FileIO | None:
    """Open a file without symbolic links; None if there is none.

    path   as the client wrote it
    A device or pipe is not waited for. Raises CoreError, also if the path changes while it is opened.
    """
    try:
        number = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise invalid(f"'{path}' is no regular file")
        if os.path.realpath(real) != str(real) or not os.path.samestat(found, os.stat(real)):
            raise forbidden(f"file '{path}' was replaced while it was opened")
        return io.FileIO(number)
    except BaseException as error:
        os.close(number)
        if isinstance(error, OSError):
            raise _unreadable(path, error) from None
        raise


def _unreadable(path: str, error: OSError) -> CoreError:
    return invalid(f"file '{path}' cannot be read: {error.strerror}")


def _listed(hosts: Sequence[HostRule]) -> str:
    if not hosts:
        return "names none"
    shown = [each.pattern + ("" if each.port is None else f":{each.port or '*'}") for each in hosts]
    return f"allows {', '.join(shown)}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
