"""A camera: plays a film over RTSP, again and again. python examples/video/camera.py FILM [PORT]

Each client gets the film from its first frame, at its own speed, by TCP (RTSP of RFC 2326, H.264 in RTP of
RFC 6184). FILM is H.264 without B-frames, as make_film.py writes it. PORT is 8554; 0 takes a free one. It
needs `av`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import av

PORT = 8554
_CLOCK = 90_000  # ticks of RTP's time stamps per second
_LARGEST = 1400  # bytes of a packet
_KEY = 5  # type of the NAL units of a whole picture
_FRAGMENT = 28  # type of a packet with a part of a NAL unit
_METHODS = "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN"

Sent = Callable[[int, int], object]


class Film:
    """The NAL units of each frame of a film, in memory.

    rate         frames per second
    parameters   the units that describe the pictures
    """

    def __init__(self, file: Path):
        with av.open(str(file)) as container:
            stream = container.streams.video[0]
            self.rate = float(stream.average_rate)
            self.parameters = described(bytes(stream.codec_context.extradata))
            self.frames = [units(bytes(each)) for each in container.demux(stream) if each.size]


def described(record: bytes) -> list[bytes]:
    """Return the parameter sets of an AVCDecoderConfigurationRecord."""
    found, at = [], 5
    for mask in (0x1F, 0xFF):
        count, at = record[at] & mask, at + 1
        for _ in range(count):
            size = int.from_bytes(record[at : at + 2], "big")
            found.append(record[at + 2 : at + 2 + size])
            at += 2 + size
    return found


def units(packet: bytes) -> list[bytes]:
    """Return the NAL units of a packet, each of which begins with its length in MP4."""
    found, at = [], 0
    while at < len(packet):
        size = int.from_bytes(packet[at : at + 4], "big")
        found.append(packet[at + 4 : at + 4 + size])
        at += 4 + size
    return found


class Camera:
    """Serves one film to any number of clients.

    sent   called with the number of a frame since the first one of its client, and time.monotonic_ns(),
           before the frame is sent
    """

    def __init__(self, film: Film, sent: Sent | None = None):
        self._film = film
        self._sent = sent or (lambda number, ns: None)

    async def serve(self, at: int | socket.socket) -> asyncio.Server:
        """Accept clients at a port of 127.0.0.1, or at a socket that listens. Raises OSError."""
        if isinstance(at, socket.socket):
            return await asyncio.start_server(self._client, sock=at)
        return await asyncio.start_server(self._client, "127.0.0.1", at)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        playing: asyncio.Task[None] | None = None
        try:
            while True:
                head = await request(reader)
                method, _, rest = head.decode("latin-1").partition(" ")
                status, more = self._answer(method, rest)
                number = re.search(r"(?i)\r\ncseq:\s*(\d+)", rest)
                lines = [f"RTSP/1.0 {status}", f"CSeq: {number[1] if number else 0}", *more]
                body = self._description() if method == "DESCRIBE" else ""
                writer.write(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
                if method == "TEARDOWN":
                    return
                if method == "PLAY" and playing is None:
                    playing = asyncio.ensure_future(self._play(writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has left
        finally:
            if playing is not None:
                playing.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await playing
            writer.close()

    def _answer(self, method: str, rest: str) -> tuple[str, list[str]]:
        """Return the status and the headers of the answer to a request."""
        if method == "OPTIONS":
            return "200 OK", [f"Public: {_METHODS}"]
        if method == "DESCRIBE":
            size = len(self._description())
            return "200 OK", ["Content-Type: application/sdp", f"Content-Length: {size}"]
        session = "Session: 1;timeout=600"
        if method == "SETUP":
            if "RTP/AVP/TCP" not in rest:
                return "461 Unsupported Transport", []
            return "200 OK", [session, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1"]
        known = method in ("PLAY", "GET_PARAMETER", "TEARDOWN")
        return ("200 OK", [session]) if known else ("501 Not Implemented", [])

    def _description(self) -> str:
        sets = ",".join(base64.b64encode(each).decode() for each in self._film.parameters)
        lines = [
            *("v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=film", "c=IN IP4 0.0.0.0", "t=0 0"),
            *("m=video 0 RTP/AVP 96", "a=rtpmap:96 H264/90000", "a=control:film"),
            f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}",
        ]
        return "\r\n".join(lines) + "\r\n"

    async def _play(self, writer: asyncio.StreamWriter) -> None:
        film, counter = self._film, itertools.count()
        begin = time.monotonic()
        for number in itertools.count():
            due = begin + number / film.rate
            await asyncio.sleep(max(0, due - time.monotonic()))
            frame = film.frames[number % len(film.frames)]
            if any(each[0] & 0x1F == _KEY for each in frame):
                frame = [*film.parameters, *frame]
            stamp = round(number * _CLOCK / film.rate)
            self._sent(number, time.monotonic_ns())
            writer.write(b"".join(packets(frame, stamp, counter)))
            await writer.drain()


async def request(reader: asyncio.StreamReader) -> bytes:
    """Return the next request of a client, without the reports that come between requests."""
    while (first := await reader.readexactly(1)) == b"$":
        _, size = struct.unpack(">BH", await reader.readexactly(3))
        await reader.readexactly(size)
    return first + await reader.readuntil(b"\r\n\r\n")


def packets(frame: list[bytes], stamp: int, counter: itertools.count[int]) -> list[bytes]:
    """Return a frame as RTP packets, each after the mark and the length that it has between messages."""
    payloads = [part for each in frame for part in payloads_of(each)]
    found = []
    for i, payload in enumerate(payloads):
        last = 0x80 if i == len(payloads) - 1 else 0
        head = struct.pack(">BBHII", 0x80, last | 96, next(counter) & 0xFFFF, stamp & 0xFFFFFFFF, 1)
        found.append(struct.pack(">BBH", ord("$"), 0, len(head) + len(payload)) + head + payload)
    return found


def payloads_of(unit: bytes) -> list[bytes]:
    """Return a NAL unit as one payload, or its parts if it is large."""
    if len(unit) <= _LARGEST:
        return [unit]
    kind, rest = unit[0], unit[1:]
    parts = [rest[at : at + _LARGEST] for at in range(0, len(rest), _LARGEST)]
    found = []
    for i, part in enumerate(parts):
        ends = (0x80 if i == 0 else 0) | (0x40 if i == len(parts) - 1 else 0)
        found.append(bytes([kind & 0xE0 | _FRAGMENT, ends | kind & 0x1F]) + part)
    return found


def start(film: Film, at: int | socket.socket = PORT, sent: Sent | None = None) -> int:
    """Serve a film on a thread that ends with the process; return the port. Raises as `serve` does."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(Camera(film, sent).serve(at))
    threading.Thread(target=loop.run_forever, name="camera", daemon=True).start()
    return int(server.sockets[0].getsockname()[1])


async def main(film: Path, port: int) -> None:
    server = await Camera(Film(film)).serve(port)
    print(f"rtsp://127.0.0.1:{server.sockets[0].getsockname()[1]}/film", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else PORT))
