"""Videos that the server watches for as long as it runs.

--watch=NAME=URL ─► [VideoWatch] ─► model `camera` ─► `track_frame` ─► events, and pictures for those who look
"""

from __future__ import annotations

import logging
import weakref

import core
from core.errors import invalid
from core_watch import routes
from core_watch.watching import Watching

logger = logging.getLogger("core")

_all: weakref.WeakSet[Watching] = weakref.WeakSet()  # of the servers of this process


@core.hookimpl
def core_add_options(parser):
    parser.add("watch", [], "Video to watch as long as the server runs: NAME=URL.")


@core.hookimpl
def core_server_starting(server):
    videos = [parsed(each) for each in server.options.added["watch"]]
    if videos and server.options.workers > 1:
        raise invalid("--watch needs --workers=1: each worker would watch each video")
    if videos and not any(each.name == "http" for each in server.options.listeners()):
        raise invalid("--watch needs --allow-http=true: events and pictures leave by the HTTP port")
    watching = server.shared(Watching)
    _all.add(watching)
    for name, url in videos:
        watching.add(name, url)
    routes.add_to(server)
    watching.start()


@core.hookimpl
def core_model_changed(model, state):
    if state == "unloading":
        for each in tuple(_all):
            each.unloads(model.name)


@core.hookimpl
def core_models_loaded(server):
    ports = [each.port for each in server.options.listeners() if each.name == "http"]
    if ports and server.options.added["watch"]:
        logger.info("watch: open http://localhost:%d/watch", ports[0])


def parsed(value: str) -> tuple[str, str]:
    """Return name and URL of a value of --watch. Raises CoreError(INVALID), without passwords of the URL."""
    name, equals, url = value.partition("=")
    known = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    if not url or not known:
        # What is before the first = may also be the beginning of a URL.
        told = f"={name}=…" if equals and not {*":/@"} & {*name} else ""
        raise invalid(
            f"--watch{told} must be NAME=URL, such as hall=rtsp://127.0.0.1:8554/film; a name has letters "
            "of ASCII, digits, - and _"
        )
    return name, url
