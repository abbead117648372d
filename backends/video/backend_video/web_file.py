"""WebFile: what a web server sends, as a file for FFmpeg; a lost connection continues where it ended."""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from backend_video.addresses import connect, reason, resolve
from backend_video.backoff import Backoff
from backend_video.patience import Patience, PatientFile
from backend_video.rules import PORTS, Place, Rules
from backend_video.stop import Stop
from core.errors import CoreError, Kind, forbidden, invalid, not_found, unavailable

_MOST_REDIRECTS = 5
_SKIPPED = 256 * 1024  # bytes that are read and dropped rather than asked for anew
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_DIGITS = 18  # of the size of a file
_CAMERA = "multipart/x-mixed-replace"
_PARTIAL, _UNSATISFIABLE = 206, 416


class WebFile:
    """A file of a web server. Not thread-safe.

    Each connection, those of redirects included, goes to an address that was resolved once and checked.

    live    whether the server tells no length, as cameras do: it cannot be read again
    ended   whether the server has marked the end of a film whose length it does not tell
    """

    def __init__(self, url: str, rules: Rules, limits: WebLimits, patience: Patience, stop: Stop):
        """Connect, and read the head of the answer. Raises CoreError, and Stopped."""
        self._place = rules.place_of(url)
        self._rules = rules
        self._limits = limits
        self._patience = patience
        self._stop = stop
        self._position = 0  # of the next byte that read returns
        self._at = 0  # of the next byte of the connection
        self._size: int | None = None
        self._received = 0
        self._seekable = False
        self.ended = False
        self._is_camera = False  # Motion JPEG as multipart, which has no end
        self._connection: _Connection | None = None
        self._answer: http.client.HTTPResponse | None = None
        self._open()

    @property
    def live(self) -> bool:
        return self._size is None

    @property
    def shown(self) -> str:
        """The URL after redirects, for errors and the log."""
        return self._place.shown

    def seekable(self) -> bool:
        return self._seekable

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._position, self._size or 0)[whence]
        if whence == 2 and self._size is None:
            raise OSError("a file of unknown size has no end")
        self._position = max(0, base + offset)
        return self._position

    def read(self, most: int) -> bytes:
        """Return the next bytes, at most `most`; none at the end.

        Raises CoreError if the server does not answer again within the time of the limits, sends more bytes
        than they allow, or the patience is over; and Stopped.
        """
        if self._size is not None and self._position >= self._size:
            return b""
        backoff: Backoff | None = None
        while True:
            begin, is_open = time.monotonic(), False
            try:
                self._go_to_position()
                is_open = True
                found = self._read(most)
                break
            except CoreError as error:
                if error.kind is not Kind.UNAVAILABLE or not self._seekable:
                    raise
                if is_open:
                    self._patience.check(self.shown)
                    begin = time.monotonic()
                backoff = backoff or Backoff(self._limits.reconnect_s, self._stop)
                self.close()
                if not backoff.wait():
                    raise
                self._patience.skip(time.monotonic() - begin)
        self._position += len(found)
        return found

    def close(self) -> None:
        """End the connection. A later read makes another."""
        connection, self._connection, self._answer = self._connection, None, None
        if connection is not None:
            connection.end()

    def _read(self, most: int) -> bytes:
        assert self._answer is not None
        try:
            found = self._answer.read1(most)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._stop.check()
            self._patience.check(self.shown)
            raise unavailable(f"'{self.shown}' broke off: {reason(error)}") from None
        self._stop.check()
        if not found and self._size is not None and self._at < self._size:
            raise unavailable(f"'{self.shown}' broke off at byte {self._at} of {self._size}")
        # The last of the chunks is the end; without it, http.client raises an error.
        self.ended = not found and self._answer.chunked and not self._is_camera
        self._at += len(found)
        self._received += len(found)
        if self._received > self._limits.most_bytes and not self._is_camera:
            raise too_large(self.shown, self._limits.most_bytes)
        return found

    def _go_to_position(self) -> None:
        if self._answer is None:
            self._open()
        if 0 < self._position - self._at <= _SKIPPED:
            while self._at < self._position and self._read(self._position - self._at):
                pass
        elif self._position != self._at:
            self.close()
            self._open()

    def _open(self) -> None:
        """Ask for the bytes from `_position`, and follow redirects."""
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._ask()
            if answer.status not in _REDIRECTS:
                self._begin(answer)
                return
            target = urllib.parse.urljoin(
                f"{self._place.scheme}://{self._place.authority}{self._place.target}",
                answer.headers.get("Location", ""),
            )
            self.close()
            place = self._rules.place_of(target)
            if place.scheme == "rtsp" or (self._place.scheme, place.scheme) == ("https", "http"):
                raise forbidden(
                    f"'{self.shown}' redirects from {self._place.scheme} to {place.scheme}, which is not "
                    "followed"
                )
            if _origin(place) == _origin(self._place) and place.user is None:
                place = replace(place, user=self._place.user, password=self._place.password)
            self._place = place
        raise invalid(f"'{self.shown}' redirects more than {_MOST_REDIRECTS} times")

    def _ask(self) -> http.client.HTTPResponse:
        place, limits = self._place, self._limits
        addresses = resolve(
            place.host, place.port, self._rules.networks, self._stop, limits.timeout_s
        )
        connection = _Connection(
            place,
            lambda: connect(place.host, addresses, self._stop, limits.timeout_s),
            self._patience,
            self._stop,
        )
        self._connection = connection
        try:
            connection.request("GET", place.target, headers=_headers(place, self._position))
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            self._stop.check()
            self._patience.check(place.shown)
            raise unavailable(f"'{place.shown}' does not answer: {reason(error)}") from None
        self._answer = answer
        return answer

    def _begin(self, answer: http.client.HTTPResponse) -> None:
        """Take the size of the file from the head of an answer. Raises CoreError if there is no file."""
        status, size = answer.status, answer.length
        if status == _PARTIAL:
            size = _whole_size(answer.getheader("Content-Range", ""))
        elif status == _UNSATISFIABLE and self._position:
            size = self._position  # the end
        elif status != 200:
            self.close()
            kind = not_found if status in (404, 410) else unavailable if status >= 500 else invalid
            raise kind(f"'{self.shown}' answers {status} {answer.reason}; expected a video")
        elif self._position:
            self.close()
            raise invalid(f"'{self.shown}' cannot be read from byte {self._position} on")
        if size is not None and size > self._limits.most_bytes:
            self.close()
            raise too_large(self.shown, self._limits.most_bytes)
        self._size = size
        self._is_camera = answer.headers.get_content_type() == _CAMERA
        self._seekable = status == _PARTIAL and size is not None
        self._at = self._position


class WebLimits:
    """Limits of a WebFile.

    most_bytes    of all that is received, except from cameras
    timeout_s     for a connection, and for each read
    reconnect_s   for which a lost connection is tried again
    """

    def __init__(self, most_bytes: int, timeout_s: float, reconnect_s: float):
        self.most_bytes = most_bytes
        self.timeout_s = timeout_s
        self.reconnect_s = reconnect_s


def too_large(shown: str, most: int) -> CoreError:
    """Return the error for a source of more bytes than the model allows."""
    return invalid(
        f"'{shown}' has more than {most} bytes, the 'max_megabytes' of the model's config.pbtxt"
    )


class _Connection(http.client.HTTPConnection):
    """One connection to a checked address. TLS compares the certificate with the name of the host."""

    def __init__(
        self,
        place: Place,
        connected: Callable[[], socket.socket],
        patience: Patience,
        stop: Stop,
    ):
        super().__init__(place.host, place.port)
        self._patience = patience
        self._made: socket.socket | None = None
        self.default_port = PORTS[place.scheme]
        self._place = place
        self._connected = connected
        self._stop = stop

    def connect(self) -> None:
        self._made = made = self._connected()
        if self._place.scheme == "https":
            # `wrap_socket` empties `made`; stop must know the socket that waits for the handshake.
            secure = ssl.create_default_context().wrap_socket(
                made, server_hostname=self._place.host, do_handshake_on_connect=False
            )
            self._made = secure
            self._stop.remove(made)
            self._stop.add(secure)
            secure.do_handshake()
        self.sock = self._made

    def _answer_of(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> http.client.HTTPResponse:
        answer = http.client.HTTPResponse(sock, debuglevel, method, url)
        file: Any = answer.fp.detach()
        answer.fp = io.BufferedReader(PatientFile(sock, file, self._patience))
        return answer

    # Where http.client lets its users replace what reads answers.
    response_class = _answer_of  # type: ignore[assignment]

    def end(self) -> None:
        made = self._made
        if made is not None:
            self._stop.remove(made)
        with contextlib.suppress(OSError):
            self.close()
        if made is not None:
            with contextlib.suppress(OSError):
                made.close()


def _origin(place: Place) -> tuple[str, str, int]:
    return place.scheme, place.host, place.port


def _headers(place: Place, position: int) -> Mapping[str, str]:
    found = {
        "Range": f"bytes={position}-",
        "Accept-Encoding": "identity",
        "User-Agent": "core-backend-video",
    }
    if place.user is not None:
        text = f"{place.user}:{place.password or ''}".encode()
        found["Authorization"] = "Basic " + base64.b64encode(text).decode()
    return found


def _whole_size(content_range: str) -> int | None:
    text = content_range.rpartition("/")[2].strip()
    is_size = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_size else None
