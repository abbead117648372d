"""Camera: an RTSP server, reached through a relay in this process.

    camera ◄── checked address ── [relay] ── 127.0.0.1 ──► FFmpeg

FFmpeg would resolve the name itself, follow redirects to any host, send packets to any address that the
camera names, and notice a cancelled request only after its own timeout. The relay connects to the address
that was checked, refuses redirects, replaces addresses in the camera's answers, and ends FFmpeg's wait at
once.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import threading
import urllib.parse

from backend_video.addresses import connect, reason, resolve
from backend_video.rules import Place, Rules
from backend_video.stop import Stop
from core.errors import CoreError, forbidden, invalid, unavailable

_MOST_BYTES = 1 << 20  # of a message of RTSP
_LONGEST_LINE = 4000  # FFmpeg drops the rest after 4095 bytes
_MOST_DIGITS = 9  # of Content-Length
_CHUNK = 1 << 18
_DOLLAR = 0x24  # begins a packet of video between messages
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_TRANSPORT = re.compile(rb"(\r\ntransport:)([^\r\n]*)", re.IGNORECASE)
_ADDRESSED = re.compile(rb"(?:source|destination)=", re.IGNORECASE)
_STATUS = re.compile(rb"RTSP/[0-9]\.[0-9] ([0-9]{3})(?: .*)?")
_UNSAFE = re.compile(rb"^\$|[\0\r\n]")  # in a line
_DIGITS = re.compile(rb"[0-9]{1,%d}" % _MOST_DIGITS)
_REQUEST = re.compile(rb"[A-Z_]+ [^ ]+ RTSP/[0-9]\.[0-9]")
_CHOSEN_BY_FFMPEG = {"multicast", "udp", "tcp", "filter_src"}  # words of a query that FFmpeg obeys


class Camera:
    """A relay to one RTSP server. Its thread ends with `close`, with the request, or with either connection.

    problem   why the relay has ended, if the camera did something that is not allowed
    """

    def __init__(self, place: Place, rules: Rules, timeout_s: float, stop: Stop):
        """Connect to the camera, and listen. Raises CoreError, and Stopped."""
        words = set(place.target.partition("?")[2].split("&"))
        if not words.isdisjoint(_CHOSEN_BY_FFMPEG):
            raise invalid(
                f"'{place.shown}' has a transport in its query; name it with the request parameter "
                "'transport'"
            )
        self.problem: CoreError | None = None
        self._place = place
        self._stop = stop
        addresses = resolve(place.host, place.port, rules.networks, stop, timeout_s)
        self._remote = connect(place.host, addresses, stop, timeout_s)
        self._address = str(self._remote.getpeername()[0]).partition("%")[0]
        try:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        except OSError as error:
            self._end(self._remote)
            raise unavailable(f"no port for '{place.shown}': {reason(error)}") from None
        stop.add(self._listener)
        self._local: socket.socket | None = None
        self._timeout_s = timeout_s
        self._port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="video relay", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL for FFmpeg."""
        user = ""
        if self._place.user is not None:
            user = urllib.parse.quote(self._place.user, "") + ":"
            user += urllib.parse.quote(self._place.password or "", "") + "@"
        return f"rtsp://{user}127.0.0.1:{self._port}{self._place.target}"

    def close(self) -> None:
        """End the connections and the thread. FFmpeg's container must be closed before."""
        for each in (self._listener, self._remote, self._local):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._listener.settimeout(self._timeout_s)
            self._local, _ = self._listener.accept()
            self._stop.add(self._local)
            self._local.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._local.settimeout(None)  # a slow client holds FFmpeg up, and FFmpeg the camera
            self._remote.settimeout(self._timeout_s)
            self._pass_on(self._local)
        except CoreError as error:
            self.problem = error
        except OSError:
            pass  # one of them has ended, and so does the other
        finally:
            for each in (self._listener, self._local, self._remote):
                if each is not None:
                    self._end(each)

    def _pass_on(self, local: socket.socket) -> None:
        """Pass bytes on both ways, and check the camera's messages until the video begins."""
        talk = _Talk(self._place.shown, self._address)
        ready = select.poll()  # select.select refuses numbers from 1024 on
        for one in (local, self._remote):
            ready.register(one, select.POLLIN)
        while True:
            for number, _ in ready.poll():
                one = local if number == local.fileno() else self._remote
                data = one.recv(_CHUNK)
                if not data:
                    return
                if one is local:
                    talk.asked(data)
                    self._remote.sendall(data)
                else:
                    local.sendall(talk.answered(data))

    def _end(self, one: socket.socket) -> None:
        self._stop.remove(one)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


class _Talk:
    """The messages before the video. After the answer to PLAY, bytes pass unchanged."""

    def __init__(self, shown: str, address: str):
        self._shown = shown
        self._address = address.encode()
        self._method = b""
        self._playing = False
        self._rest = b""

    def asked(self, data: bytes) -> None:
        """Note the method of FFmpeg's request. FFmpeg waits for each answer before the next request."""
        word = data[:32].partition(b" ")[0]
        if word.isalpha() or word in (b"GET_PARAMETER", b"SET_PARAMETER"):
            self._method = word

    def answered(self, data: bytes) -> bytes:
        """Return what FFmpeg gets of the camera's bytes. Raises CoreError for a redirect."""
        if self._playing:
            return data
        self._rest += data
        passed = []
        while not self._playing and (size := self._size()):
            message, self._rest = self._rest[:size], self._rest[size:]
            passed.append(message if message[0] == _DOLLAR else self._checked(message))
        if self._playing:
            passed.append(self._rest)
            self._rest = b""
        elif len(self._rest) > _MOST_BYTES:
            raise self._no_rtsp()
        return b"".join(passed)

    def _size(self) -> int:
        """Return the size of the first message or packet; 0 if it is not whole yet."""
        rest = self._rest
        if not rest:
            return 0
        if rest[0] == _DOLLAR:
            size = 4 + int.from_bytes(rest[2:4], "big") if len(rest) >= 4 else 0
        else:
            end = rest.find(_END)
            length = _LENGTH.search(rest, 0, max(0, end))
            body = int(length[1][:_MOST_DIGITS]) if length else 0
            size = end + len(_END) + body if end >= 0 else 0
        return size if len(rest) >= size else 0

    def _checked(self, message: bytes) -> bytes:
        # FFmpeg ends lines at any \n, drops \r, skips blanks, takes a $ for a packet, and the last of two
        # headers. So a head passes only if both read it alike.
        head, end, body = message.partition(_END)
        lines = head.split(b"\r\n")
        sizes = [each for each in lines if each[:15].lower() == b"content-length:"]
        status = _STATUS.fullmatch(lines[0])
        if (
            not (status or _REQUEST.fullmatch(lines[0]))
            or any(len(each) > _LONGEST_LINE or _UNSAFE.search(each) for each in lines)
            or len(sizes) > 1
            or not all(_DIGITS.fullmatch(each[15:].strip(b" \t")) for each in sizes)
        ):
            raise self._no_rtsp()
        if status and status[1][:1] == b"3":
            raise forbidden(f"'{self._shown}' redirects to another server, which is not followed")
        if status and self._method == b"PLAY" and status[1] == b"200":
            self._playing = True
        return _TRANSPORT.sub(self._own_address, head) + end + body

    def _own_address(self, found: re.Match[bytes]) -> bytes:
        """Return a header Transport that sends FFmpeg's packets to the camera and nowhere else."""
        # Of several transports FFmpeg obeys the first, and it takes /source for source.
        parts = found[2].partition(b",")[0].split(b";")
        kept = b";".join(each for each in parts if not _ADDRESSED.search(each))
        if b"multicast" in kept.lower():
            raise forbidden(f"'{self._shown}' sends to a group of addresses, which is not followed")
        return found[1] + kept + b";source=" + self._address

    def _no_rtsp(self) -> CoreError:
        return invalid(
            f"'{self._shown}' sends no messages of RTSP; expected lines that end with CR LF, a status or a "
            "request, and at most one Content-Length"
        )
