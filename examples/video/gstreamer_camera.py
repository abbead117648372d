"""A camera by GStreamer's RTSP server: /usr/bin/python3 examples/video/gstreamer_camera.py FILM.h264 RATE

Each client gets the film from its first frame, again and again, RATE frames per second, over TCP or UDP.
FILM is H.264 as a stream of bytes with one slice per frame. The camera takes a free port, prints its URL, and
ends when its stdin does. It needs Debian's python3-gi, gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-good
and -bad.
--check tells by the status 0 whether they are there.
"""

from __future__ import annotations

import itertools
import signal
import sys
from pathlib import Path

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

NEEDED = ("appsrc", "h264parse", "rtph264pay")
PIPELINE = (
    "( appsrc name=film format=time ! video/x-h264,stream-format=byte-stream,alignment=au"
    " ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1 )"
)
_BEGIN = b"\0\0\1"  # of each NAL unit, after any number of zeros
_SLICES = (1, 5)  # types of the NAL units with pictures


def frames_of(film: bytes) -> list[bytes]:
    """Return the units of each frame: those that describe it, and its slice."""
    found, units = [], b""
    for unit in film.split(_BEGIN)[1:]:
        units += b"\0" + _BEGIN + unit.rstrip(b"\0")
        if unit[0] & 0x1F in _SLICES:
            found.append(units)
            units = b""
    return found


class Camera:
    """Plays a film to each client."""

    def __init__(self, frames: list[bytes], rate: float):
        self._frames = frames
        self._step_ns = round(Gst.SECOND / rate)

    def serve(self) -> int:
        """Accept clients; return the port."""
        server = GstRtspServer.RTSPServer()
        server.set_address("127.0.0.1")
        server.set_service("0")
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(PIPELINE)
        factory.connect("media-configure", self._configure)
        server.get_mount_points().add_factory("/film", factory)
        server.attach(None)
        return int(server.get_bound_port())

    def _configure(
        self, factory: GstRtspServer.RTSPMediaFactory, media: GstRtspServer.RTSPMedia
    ) -> None:
        source = media.get_element().get_by_name_recurse_up("film")
        numbers = itertools.count()
        source.connect("need-data", lambda source, size: self._push(source, next(numbers)))

    def _push(self, source: Gst.Element, number: int) -> None:
        buffer = Gst.Buffer.new_wrapped(self._frames[number % len(self._frames)])
        buffer.pts = buffer.dts = number * self._step_ns
        buffer.duration = self._step_ns
        source.emit("push-buffer", buffer)


def main(arguments: list[str]) -> int:
    Gst.init(None)
    if missing := [each for each in NEEDED if Gst.ElementFactory.find(each) is None]:
        print(f"GStreamer has no {', '.join(missing)}", file=sys.stderr)
        return 3
    if arguments == ["--check"]:
        return 0
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    port = Camera(frames_of(Path(arguments[0]).read_bytes()), float(arguments[1])).serve()
    loop = GLib.MainLoop()
    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, lambda *_: loop.quit())
    print(f"rtsp://127.0.0.1:{port}/film", flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
