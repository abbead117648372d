"""Video: backend-video compared with two loops of PyAV, which decode and convert to RGB.

    python -m benchmarks.backends.video [--rounds=N] [--frames=N] [--json=FILE]

Rendered films of three sizes, with one decoding thread each. The first loop is as PyAV's documentation has
it: its conversion uses all cores. The second one converts with one thread, as the server does. All decode the
same film in turns, so other work on the machine affects all, and each round compares them. The table gives
the time per frame of the server in this process, and each loop's time and CPU time divided by those of the
server: medians. Frames that differ end the program with status 1.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

LOOPS = {"all cores": 0, "one thread": 1}  # threads that convert; 0 for PyAV's choice
SIZES = ((320, 240), (768, 576), (1920, 1080))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends.video")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, default=150)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()

    import core
    from core.system import heap

    heap.keep()  # as the program core-serve does
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "frames")
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text('backend: "video"')
        with core.Server(model_repository=folder) as server:
            results = [measure(server, size, options.frames, options.rounds) for size in SIZES]
    print(table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


def measure(server: Any, size: tuple[int, int], frames: int, rounds: int) -> dict[str, Any]:
    """Return the time per frame of the server in µs, and the loops' times divided by its own: medians."""
    from backend_video.films import film

    width, height = size
    data = film(frames, width=width, height=height, picture=scene)
    expected = sums(bare(data, 1))
    if sums(answer["frame"] for answer in ask(server, data)) != expected:
        sys.exit(f"{width} x {height}: the frames differ from those of PyAV")
    ours: list[float] = []
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in LOOPS}
    for _ in range(rounds):
        wall, cpu = seconds(ask(server, data), frames)
        ours.append(wall)
        for name, threads in LOOPS.items():
            bare_wall, bare_cpu = seconds(bare(data, threads), frames)
            times[name].append((bare_wall / wall, bare_cpu / cpu))
    return {
        "size": f"{width} x {height}",
        "us_per_frame": statistics.median(ours) / frames * 1e6,
        "loops": {
            name: {
                "ratio": statistics.median(ratio for ratio, _ in found),
                "cpu_ratio": statistics.median(ratio for _, ratio in found),
            }
            for name, found in times.items()
        },
    }


def ask(server: Any, data: bytes) -> Any:
    """Return the answers of the server to a film."""
    return server.stream("frames", {"file": [data]})


def bare(data: bytes, threads: int) -> Any:
    """Yield the frames of a film by PyAV's loop. threads: that convert a frame, 0 for all cores."""
    import av

    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for frame in container.decode(stream):
            yield frame.to_ndarray(format="rgb24", threads=threads)


def seconds(frames: Any, count: int) -> tuple[float, float]:
    """Return the time that an iterator takes for `count` items, and the CPU time of all threads."""
    begin, begin_cpu = time.perf_counter(), time.process_time()
    found = sum(1 for _ in frames)
    if found != count:
        sys.exit(f"{found} frames came instead of {count}")
    return time.perf_counter() - begin, time.process_time() - begin_cpu


def sums(frames: Any) -> list[int]:
    """Return a number for each frame that changes with its pixels."""
    return [hash(np.ascontiguousarray(each).tobytes()) for each in frames]


def scene(number: int, width: int, height: int) -> np.ndarray:
    """Return a picture with a moving gradient and noise, which compresses like a camera's."""
    noise = np.random.default_rng(number).integers(0, 12, (height, width, 1), np.uint8)
    slope = (np.arange(width)[None, :, None] + np.arange(height)[:, None, None] + 4 * number) % 230
    return np.asarray(np.broadcast_to(slope + noise, (height, width, 3))).astype(np.uint8)


def table(results: list[dict[str, Any]]) -> str:
    heads = ["size", "µs per frame"]
    heads += [f"{name}: {what}" for name in LOOPS for what in ("time", "CPU time")]
    rows = [heads, ["---"] * len(heads)]
    for each in results:
        ratios = [f"{ratio:.2f}" for found in each["loops"].values() for ratio in found.values()]
        rows.append([each["size"], f"{each['us_per_frame']:.0f}", *ratios])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
