"""A server in this process: the models of repositories, and functions, asked without sockets.

    with core.Server(model_repository="models/") as server:
        answer = server.models.infer("m", {"x": array})

a thread or a task of the user ─► Server ─► mailbox ─► loop thread: core.server.Server ─► Reply ─► back

server.py      Server: start and end, requests, binding
managing.py    Managing: load, unload, ready, statistics and their like
running.py     what happens on the loop from the start to the end, frontends included
settings.py    keyword arguments → Options
values.py      arrays → request; Response
asking.py      one request on its way, and who waits for its answer
streams.py     Stream, AsyncStream: all answers to one request
mailbox.py     calls from thread to loop, many with one wake-up; the thread of the server's loop
functions/     functions as models
"""

from core.embedded.functions import Spec
from core.embedded.server import Server
from core.embedded.streams import AsyncStream, Stream
from core.embedded.values import Response, Timeout

__all__ = ["AsyncStream", "Response", "Server", "Spec", "Stream", "Timeout"]
