"""Watch rendered videos in the browser: python examples/video/serve.py [OPTION OF core-serve]…

    film ─► camera (RTSP) ─► core-serve with the plugin of watch/ ─► http://localhost:8000/watch

It renders two films in build/video, plays them as cameras, by the RTSP server of GStreamer where Debian's is
installed, and serves examples/video/models.
--watch=NAME=URL names other videos in their place. Clients of this machine only reach it, unless
--http-address and --grpc-address name another address. Ctrl-C ends it all. It needs core with the backends
image, onnx, tracker and video.
"""

from __future__ import annotations

import sys
from pathlib import Path

import camera
import gstreamer
import make_film

FOLDER = Path(__file__).parent
FILMS = Path("build/video")
SECONDS = 40.0
sys.path.insert(0, str(FOLDER / "watch"))

import core_watch  # noqa: E402

from core import plugins, serve  # noqa: E402


def main(arguments: list[str]) -> int:
    plugins.hooks().register(core_watch, "watch")
    options = [*defaults(arguments), *arguments]
    if not any(each.startswith(("--watch", "-h", "--help")) for each in arguments):
        options += [f"--watch={name}={url}" for name, url in cameras().items()]
    return serve.main(options)


def defaults(arguments: list[str]) -> list[str]:
    """Return the options that the arguments leave out.

    Clients may let the model `camera` connect to ports of this machine, so only clients of this machine may.
    """
    given = {each.partition("=")[0] for each in arguments}
    own = {
        "--model-repository": str(FOLDER / "models"),
        "--http-address": "127.0.0.1",
        "--grpc-address": "127.0.0.1",
    }
    return [f"{name}={value}" for name, value in own.items() if name not in given]


def cameras() -> dict[str, str]:
    """Play two films until the process ends; return the URL of each."""
    urls = {}
    by_gstreamer = gstreamer.is_there()
    by = "GStreamer" if by_gstreamer else "camera.py, as GStreamer's RTSP server is not installed"
    for name, cross in (("bouncing", False), ("crossing", True)):
        file = FILMS / f"{name}.mp4"
        if not file.exists():
            print(f"rendering {file}, {SECONDS:.0f} s of film", flush=True)
            part = file.with_name(f"part-{file.name}")
            make_film.render(part, SECONDS, cross=cross)
            part.rename(file)
        if by_gstreamer:
            urls[name] = gstreamer.start(file)
        else:
            urls[name] = f"rtsp://127.0.0.1:{camera.start(camera.Film(file), 0)}/{name}"
        print(f"camera {urls[name]} by {by}", flush=True)
    return urls


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
