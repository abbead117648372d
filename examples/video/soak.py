"""A camera that dies every 20 seconds, for ten minutes: python examples/video/soak.py [--seconds=600]

The server of serve.py watches it, while one client reads events and another one pictures. Each loss must be
told as a gap, and neither memory nor descriptors nor threads may grow. The status is 1 if one does.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import make_film
from served import Served, free_port, models

CAMERA = Path(__file__).with_name("camera.py")
AWAY_S = 1.0
MOST_MB = 16  # of growth from the second quarter of the time to the last one


@dataclass
class Watched:
    """What a client of events has seen: frames, and the gaps that it was told."""

    frames: int = 0
    gaps: list[float] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def read(self, events: Any) -> None:
        for event in events:
            if "tracks" not in event:
                continue
            self.frames += 1
            if event["gap"]:
                self.gaps.append(event["gap"] / 1e9)
                self.notices.append(event["notice"])


class Camera:
    """The camera, in a process that can be killed."""

    def __init__(self, film: Path):
        self._film = film
        self._port = free_port()
        self.url = f"rtsp://127.0.0.1:{self._port}/film"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(CAMERA), str(self._film), str(self._port)],
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it listens

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def size_of(pid: int) -> tuple[float, int, int]:
    """Return the resident memory of a process in MB, its descriptors and its threads."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines)
    descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return int(facts["VmRSS"].split()[0]) / 1024, descriptors, int(facts["Threads"])


def soak(server: Served, watched: Watched, camera: Camera, given: argparse.Namespace) -> bool:
    """Kill the camera now and then, and print what the server holds. Return whether all is well."""
    begin = time.monotonic()
    sizes: list[tuple[float, int, int]] = []
    rounds = max(1, int(given.seconds // given.every))
    for number in range(rounds):
        time.sleep(max(0, begin + given.every * (number + 1) - time.monotonic()))
        # Measured before the camera dies, while frames come.
        sizes.append(size_of(server.process.pid))
        memory, descriptors, threads = sizes[-1]
        print(
            f"{time.monotonic() - begin:5.0f} s: {watched.frames} frames, {number} losses, "
            f"{len(watched.gaps)} told, {memory:.0f} MB, {descriptors} descriptors, {threads} threads",
            flush=True,
        )
        if number < rounds - 1:
            camera.kill()
            time.sleep(AWAY_S)
            camera.start()
    return verdict(rounds - 1, watched, sizes)


def verdict(kills: int, watched: Watched, sizes: list[tuple[float, int, int]]) -> bool:
    quarter = max(1, len(sizes) // 4)
    early, late = sizes[quarter : 2 * quarter] or sizes, sizes[-quarter:]
    grown = [
        statistics.median(each[i] for each in late) - statistics.median(each[i] for each in early)
        for i in range(3)
    ]
    longest = max(watched.gaps, default=0)
    print(f"{kills} losses, {len(watched.gaps)} told, the longest of {longest:.1f} s")
    print(f"grown by {grown[0]:.1f} MB, {grown[1]:.0f} descriptors, {grown[2]:.0f} threads")
    told = len(watched.gaps) == kills and all("lost" in each for each in watched.notices)
    return told and grown[0] < MOST_MB and grown[1] <= 0 and grown[2] <= 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="soak.py")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder, "film.mp4")
        make_film.render(film, 8)
        camera = Camera(film)
        with Served(models(Path(folder)), {"film": camera.url}) as server:
            watched = Watched()
            pictures = server.response("/watch/videos/film/pictures")
            for read in (lambda: watched.read(server.events()), lambda: drain(pictures)):
                threading.Thread(target=read, daemon=True).start()
            well = soak(server, watched, camera, given)
        camera.kill()
    sys.exit(0 if well else "a loss was not told, or something has grown")


def drain(pictures: Any) -> None:
    while pictures.read1(65536):
        pass


if __name__ == "__main__":
    main()
