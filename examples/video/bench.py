"""How many videos one core carries, and how late tracks are: python examples/video/bench.py

Compares the server of serve.py with loop.py, the same work by hand. Cameras of 25 frames per second of
768 x 576 pixels run on the first processor with this program; server or loop runs alone on the last one.

    CPU       both watch --streams videos in turn, --rounds times: CPU time per frame, and the videos that it
              would allow on one core
    carried   each watches more and more videos, from one less than that, until it leaves out over 1 % of
              the frames
    latency   one video, in turn: from when the camera sends a frame until its tracks are here

At the end it prints a table in Markdown. The status is 1 if the server's videos, by CPU time or carried, are
fewer than --least of the loop's, or if the server adds more than --most-ms to the median latency. It takes
about five minutes, and nothing else should run.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import camera
import make_film
import orjson
from served import Served, models, on

LOOP = Path(__file__).with_name("loop.py")
RATE = 25
MOST_VIDEOS = 100  # that the server takes at once
TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_S = 4.0  # before a measurement: frames that waited for the start are done
LEAST = 0.99  # of the frames, for a video that is carried


class Sends:
    """When the camera has sent each frame to its last client, in nanoseconds."""

    def __init__(self) -> None:
        self.times: dict[int, int] = {}

    def __call__(self, number: int, ns: int) -> None:
        self.times[number] = ns


@dataclass
class Trial:
    """What was measured while videos were watched.

    share      answered frames, of those that the cameras have sent
    cpu_ms     CPU time of a frame
    late_ms    how late its tracks are, for each frame; only for one video
    """

    share: float
    cpu_ms: float
    late_ms: list[float]


class Pair(NamedTuple):
    """A figure of the server and of the loop."""

    server: float
    loop: float


class Bench:
    """Watches videos with the server or with the loop."""

    def __init__(self, folder: Path, seconds: float):
        film = folder / "film.mp4"
        make_film.render(film, 20)
        self.sends = Sends()
        self._port = camera.start(camera.Film(film), 0, self.sends)
        # The loop leaves out no frame either, and takes any number of videos.
        self._models = models(folder, MOST_VIDEOS, policy="all")
        self._seconds = seconds
        self._processor = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    def trial(self, who: str, streams: int) -> Trial:
        """Watch videos for some seconds."""
        videos = {f"v{number}": f"rtsp://127.0.0.1:{self._port}/film" for number in range(streams)}
        with getattr(self, who)(videos) as (pid, events):
            begun: set[str] = set()
            for event in events:
                begun.add(event["video"])
                if "tracks" in event and len(begun) == streams:
                    break
            return self._measured(pid, events, streams)

    def _measured(self, pid: int, events: Iterator[dict[str, Any]], streams: int) -> Trial:
        settled = time.monotonic() + SETTLE_S
        count, late, cpu, begin = 0, [], 0.0, 0.0
        for event in events:
            now_ns = time.monotonic_ns()
            now = now_ns / 1e9
            if now < settled or "tracks" not in event:
                continue
            if not begin:
                begin, cpu = now, cpu_s(pid)
                continue
            count += 1
            if streams == 1 and event["index"] in self.sends.times:
                late.append((now_ns - self.sends.times[event["index"]]) / 1e6)
            if now - begin >= self._seconds:
                break
        wall = time.monotonic() - begin
        return Trial(count / (wall * RATE * streams), (cpu_s(pid) - cpu) / count * 1e3, late)

    @contextlib.contextmanager
    def server(self, videos: dict[str, str]) -> Iterator[tuple[int, Iterator[dict[str, Any]]]]:
        with Served(self._models, videos, self._processor) as server:
            yield server.process.pid, server.events()

    @contextlib.contextmanager
    def loop(self, videos: dict[str, str]) -> Iterator[tuple[int, Iterator[dict[str, Any]]]]:
        named = [f"{name}={url}" for name, url in videos.items()]
        command = [*on(self._processor), sys.executable, str(LOOP), *named]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            assert running.stdout is not None
            try:
                yield running.pid, (orjson.loads(line) for line in running.stdout)
            finally:
                running.kill()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def allowed(cpu_ms: float) -> float:
    """Return the videos that one core can carry by the CPU time of a frame."""
    return 1000 / RATE / cpu_ms


def compare_cpu(bench: Bench, streams: int, rounds: int) -> Pair:
    """Print the CPU time per frame of each round; return the medians, in ms."""
    found: dict[str, list[float]] = {"server": [], "loop": []}
    for number in range(rounds):
        for who in ("server", "loop") if number % 2 == 0 else ("loop", "server"):
            trial = bench.trial(who, streams)
            found[who].append(trial.cpu_ms)
            print(f"  {who}: {trial.cpu_ms:.2f} ms, {trial.share:.1%} of the frames", flush=True)
    return Pair(*map(statistics.median, found.values()))


def carried(bench: Bench, who: str, expected: float) -> int:
    """Return the number of videos of which over 99 % of the frames are answered, on one core."""

    def carries(streams: int) -> bool:
        share = bench.trial(who, streams).share
        print(f"  {who}: {streams} videos, {share:.1%} of the frames", flush=True)
        return share >= LEAST

    streams = max(1, int(expected) - 1)
    if not carries(streams):
        return next((fewer for fewer in range(streams - 1, 0, -1) if carries(fewer)), 0)
    while carries(streams + 1):
        streams += 1
    return streams


def compare_latency(bench: Bench, rounds: int) -> tuple[Pair, Pair]:
    """Return how late tracks are, in ms: the median, and what 99 % are below."""
    found: dict[str, list[float]] = {"server": [], "loop": []}
    for _ in range(rounds):
        for who, late in found.items():
            late += bench.trial(who, 1).late_ms
    return (
        Pair(*map(statistics.median, found.values())),
        Pair(*(sorted(late)[int(0.99 * len(late))] for late in found.values())),
    )


def table(cpu: Pair, most: Pair | None, middle: Pair, last: Pair) -> str:
    """Return what was measured, in Markdown. `most` are the videos that were carried; None for not tried."""
    rows = [
        ("", "server", "loop", "server and loop"),
        ("---", "---", "---", "---"),
        ("CPU time per frame", f"{cpu.server:.2f} ms", f"{cpu.loop:.2f} ms", ""),
        (
            "videos on one core, by CPU time",
            f"{allowed(cpu.server):.1f}",
            f"{allowed(cpu.loop):.1f}",
            f"{ratio(cpu):.3f}",
        ),
        (
            "from frame to tracks, median",
            f"{middle.server:.1f} ms",
            f"{middle.loop:.1f} ms",
            f"{added_ms(middle):+.1f} ms",
        ),
        (
            "from frame to tracks, 99 % within",
            f"{last.server:.1f} ms",
            f"{last.loop:.1f} ms",
            f"{added_ms(last):+.1f} ms",
        ),
    ]
    if most is not None:
        rows.insert(4, ("videos carried on one core", f"{most.server:g}", f"{most.loop:g}", ""))
    return "\n".join(f"| {' | '.join(row)} |".replace("  ", " ") for row in rows)


def ratio(cpu: Pair) -> float:
    """Return the server's videos on one core divided by the loop's."""
    return cpu.loop / cpu.server


def added_ms(late: Pair) -> float:
    """Return what the server adds to a latency."""
    return late.server - late.loop


def missed(cpu: Pair, most: Pair | None, middle: Pair, least: float, most_ms: float) -> list[str]:
    """Return a sentence for each bound that does not hold. `most` is None for not tried."""
    found = []
    if ratio(cpu) < least:
        found.append(
            f"the server's videos on one core are {ratio(cpu):.3f} of the loop's; --least expects {least:g}"
        )
    if most is not None and most.server < (expected := math.floor(least * most.loop)):
        found.append(
            f"the server carried {most.server:g} videos, the loop {most.loop:g}; --least expects {expected}"
        )
    if added_ms(middle) > most_ms:
        found.append(
            f"the server adds {added_ms(middle):.1f} ms from frame to tracks; --most-ms allows {most_ms:g}"
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.py")
    parser.add_argument("--streams", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--skip-carried", action="store_true")
    parser.add_argument(
        "--least", type=float, default=0.95, help="of the loop's videos on one core"
    )
    parser.add_argument("--most-ms", type=float, default=10, help="that the server adds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.seconds)
        print(f"CPU, {given.streams} videos")
        cpu = compare_cpu(bench, given.streams, given.rounds)
        most = None
        if not given.skip_carried:
            print("carried, one core")
            most = Pair(
                carried(bench, "server", allowed(cpu.server)),
                carried(bench, "loop", allowed(cpu.loop)),
            )
        print("latency, one video", flush=True)
        middle, last = compare_latency(bench, given.rounds)
    print(f"\n{table(cpu, most, middle, last)}\n", flush=True)
    if problems := missed(cpu, most, middle, given.least, given.most_ms):
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
