"""Videos that the server watches for as long as it runs.

--watch=NAME=URL ─► [VideoWatch] ─► model `camera` ─► `track_frame` ─► events, and pictures for those who look
"""

from __future__ import annotations

import logging

import core
from core.errors import invalid
from core_watch import routes
from core_watch.watching import Watching

logger = logging.getLogger("core")


@core.hookimpl
def core_add_options(parser):
    parser.add("watch", [], "Video to watch as long as the server runs: NAME=URL.")


@core.hookimpl
def core_server_starting(server):
    videos = [parsed(each) for each in server.options.added["watch"]]
    if videos and server.options.workers > 1:
        raise invalid("--watch needs --workers=1: each worker would watch each video")
    watching = server.shared(Watching)
    for name, url in videos:
        watching.add(name, url)
    routes.add_to(server)
    watching.start()


@core.hookimpl
def core_models_loaded(server):
    ports = [each.port for each in server.options.listeners() if each.name == "http"]
    if ports and server.options.added["watch"]:
        logger.info("watch: open http://localhost:%d/watch", ports[0])


def parsed(value: str) -> tuple[str, str]:
    """Return name and URL of a value of --watch. Raises CoreError(INVALID)."""
    name, _, url = value.partition("=")
    if not url or not name.replace("-", "").replace("_", "").isalnum():
        raise invalid(
            f"--watch={value} must be NAME=URL, such as hall=rtsp://127.0.0.1:8554/film; a name has letters, "
            "digits, - and _"
        )
    return name, url
