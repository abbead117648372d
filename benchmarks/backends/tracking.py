"""Tracking: backend-tracker compared with the package `trackers`, whose ids it must give.

    python -m benchmarks.backends.tracking [--rounds=N] [--frames=N] [--streams=N] [--json=FILE]

Generated scenes of 5, 20 and 60 objects. Both track the same scene in turns, so other work on the machine
affects both, and each round compares them. The table gives the time per frame of the compiled tracker, and
the median of the reference's time divided by it. `served` is the time per frame of a server in this process,
which gets one request after the other. A difference of one id ends the program with status 1.

With --streams, that many streams run at the same time in a server in this process, instead: each sends its
next frame when all have their answers. The program prints frames per second and the memory of a stream.

Needs: `pip install trackers`, and backend-tracker from its wheel or from `make dev`: `make test` compiles it
with -O1, which is slower.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

OBJECTS = (5, 20, 60)
TRACKERS = {
    "bytetrack": ("ByteTrackTracker", {}),
    "ocsort": ("OCSORTTracker", {}),
    "botsort": ("BoTSORTTracker", {"enable_cmc": False}),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends.tracking")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, default=150)
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.streams:
        print(asyncio.run(serve(options.streams, options.rounds)))
        return
    with serving(TRACKERS) as server:
        results = [
            measure(server, tracker, objects, options.frames, options.rounds)
            for tracker in TRACKERS
            for objects in OBJECTS
        ]
    print(table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


@contextlib.contextmanager
def serving(trackers: Iterable[str]) -> Iterator[Any]:
    """Give a server in this process, with a model of each tracker that has its name."""
    import core

    with tempfile.TemporaryDirectory() as folder:
        for each in trackers:
            (Path(folder, each) / "1").mkdir(parents=True)
            named = f'parameters {{ key: "tracker" value {{ string_value: "{each}" }} }}'
            Path(folder, each, "config.pbtxt").write_text(f'backend: "tracker" {named}')
        with core.Server(model_repository=folder) as server:
            yield server


def measure(server: Any, tracker: str, objects: int, frames: int, rounds: int) -> dict[str, Any]:
    """Return times per frame in µs, and the reference's time divided by the compiled tracker's: medians."""
    from backend_tracker.scenes import scene

    made = scene(seed=objects, frames=frames, objects=objects)
    ours, served, ratios = [], [], []
    for _ in range(rounds):
        fast, ids = track(tracker, made)
        slow, expected = track_with_reference(tracker, made)
        whole, answered = track_by_requests(server, tracker, made)
        if not ids == answered == expected:
            sys.exit(f"{tracker}, {objects} objects: the ids differ from those of `trackers`")
        ours.append(fast / frames * 1e6)
        served.append(whole / frames * 1e6)
        ratios.append(slow / fast)
    return {
        "tracker": tracker,
        "objects": objects,
        "boxes_per_frame": sum(len(frame.boxes) for frame in made) / frames,
        "us_per_frame": statistics.median(ours),
        "served_us_per_frame": statistics.median(served),
        "times": statistics.median(ratios),
        "least": min(ratios),
    }


def track(tracker: str, frames: list[Any]) -> tuple[float, list[list[int]]]:
    """Return the seconds that the compiled tracker takes for the frames, and their ids."""
    from backend_tracker.native.streams import Streams
    from backend_tracker.settings import settings_of

    from core.config import ModelConfig

    config = ModelConfig(name="benchmark")
    config.parameters["tracker"].string_value = tracker
    streams = Streams(settings_of(config, Path("no file")))
    stream = streams.begin()
    found = []
    start = time.perf_counter()
    for frame in frames:
        found.append(streams.update(stream, frame.boxes, frame.scores, frame.classes)[0])
    return time.perf_counter() - start, [ids.tolist() for ids in found]


def track_by_requests(
    server: Any, tracker: str, frames: list[Any]
) -> tuple[float, list[list[int]]]:
    """Return the seconds of a request for each frame, one after the other, and the ids of the answers."""
    found = []
    start = time.perf_counter()
    for number, frame in enumerate(frames):
        answer = server.infer(
            tracker,
            {"boxes": frame.boxes[None], "scores": frame.scores[None]},
            correlation_id=1,
            sequence_start=number == 0,
            sequence_end=number == len(frames) - 1,
        )
        found.append(answer["ids"][0])
    return time.perf_counter() - start, [ids.tolist() for ids in found]


def track_with_reference(tracker: str, frames: list[Any]) -> tuple[float, list[list[int]]]:
    """Return the same of the package `trackers`. The time is that of `update` only."""
    supervision = importlib.import_module("supervision")
    trackers = importlib.import_module("trackers")
    name, given = TRACKERS[tracker]
    running = getattr(trackers, name)(**given)
    found, seconds = [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for frame in frames:
            numbers = np.arange(len(frame.boxes))
            detections = supervision.Detections(
                xyxy=frame.boxes, confidence=frame.scores, class_id=numbers
            )
            start = time.perf_counter()
            answer = running.update(detections)
            seconds += time.perf_counter() - start
            ids = np.full(len(numbers), -1)
            if len(answer):
                ids[answer.class_id] = answer.tracker_id
            found.append(ids.tolist())
    return seconds, found


async def serve(streams: int, rounds: int) -> str:
    """Return a line about `streams` streams of ten objects in one server."""
    from backend_tracker.scenes import scene

    import core

    frames = scene(seed=1, frames=rounds + 2, objects=10, missed=0)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "tracks")
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text('backend: "tracker"')
        with core.Server(model_repository=folder) as server:

            async def send(number: int, frame: Any, start: bool) -> None:
                tensors = {"boxes": frame.boxes[None], "scores": frame.scores[None]}
                await server.infer_async(
                    "tracks", tensors, correlation_id=number + 1, sequence_start=start
                )

            before, seconds = resident_bytes(), []
            for number, frame in enumerate(frames):
                start = time.perf_counter()
                await asyncio.gather(*(send(each, frame, number == 0) for each in range(streams)))
                seconds.append(time.perf_counter() - start)
            kept = (resident_bytes() - before) / streams
    rate = streams / statistics.median(seconds[2:])
    return f"{streams} streams: {rate:.0f} frames per second, {kept / 1024:.1f} KiB for each stream"


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def table(results: list[dict[str, Any]]) -> str:
    lines = [
        f"{'tracker':10} {'objects':>7} {'boxes':>6} {'µs/frame':>9} {'served':>7} "
        f"{'trackers':>9} {'least':>7}"
    ]
    lines += [
        f"{each['tracker']:10} {each['objects']:7} {each['boxes_per_frame']:6.1f} "
        f"{each['us_per_frame']:9.1f} {each['served_us_per_frame']:7.1f} "
        f"{each['times']:8.1f}x {each['least']:6.1f}x"
        for each in results
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
