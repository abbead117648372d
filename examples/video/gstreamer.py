"""Play films as cameras by the RTSP server of GStreamer, where the system has it: is_there, start.

It runs in a process of the system's Python, whose packages of Debian this one does not see.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import av

PYTHON = "/usr/bin/python3"
PROGRAM = Path(__file__).with_name("gstreamer_camera.py")

_running: list[subprocess.Popen[str]] = []  # each ends with its stdin, so with this process


def is_there(python: str = PYTHON) -> bool:
    """Return whether this Python has the RTSP server of GStreamer."""
    try:
        done = subprocess.run([python, PROGRAM, "--check"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def start(film: Path) -> str:
    """Play a film of make_film.py until this process ends; return the URL. Raises OSError if it cannot."""
    stream, rate = _as_bytes(film)
    command = [PYTHON, str(PROGRAM), str(stream), str(rate)]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    _running.append(started)
    assert started.stdout is not None
    url = started.stdout.readline().strip()
    if not url:
        raise OSError(
            f"GStreamer does not play '{stream}': {PROGRAM.name} ended with {started.wait()}"
        )
    return url


def _as_bytes(film: Path) -> tuple[Path, float]:
    """Write the video of a film as a stream of bytes beside it; return the file, and frames per second."""
    target = film.with_suffix(".h264")
    part = target.with_name(f"part-{target.name}")
    with av.open(str(film)) as source, av.open(str(part), "w", format="h264") as output:
        video = source.streams.video[0]
        copied = output.add_stream_from_template(video)
        for packet in source.demux(video):
            if packet.size:
                packet.stream = copied
                output.mux(packet)
        rate = float(video.average_rate or 25)
    part.rename(target)
    return target, rate
