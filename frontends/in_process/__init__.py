"""A frontend without a socket: a Python program calls the server that runs inside it.

    with core.Server(model_repository="models/") as server:
        response = server.infer("m", {"x": array})

thread or task of the program ─► Server ─► CallQueue ─► loop thread: InferenceServer ─► response

server.py        Server, which programs use as core.Server: start, stop, inference, functions
control.py       load, unload, readiness, statistics and the other control operations
lifetime.py      start and stop of the InferenceServer and of its other frontends, on the loop
options.py       keyword arguments → Options
values.py        arrays → InferenceRequest; InferenceResponse → Response
pending.py       one request between the program and the server
streams.py       ResponseStream, AsyncResponseStream: all responses to one request
loop_thread.py   the thread of the server's event loop; calls from other threads to a loop
functions/       functions as models
"""

from frontends.in_process.functions import Spec
from frontends.in_process.server import Server
from frontends.in_process.streams import AsyncResponseStream, ResponseStream
from frontends.in_process.values import Response, Timeout

__all__ = ["AsyncResponseStream", "Response", "ResponseStream", "Server", "Spec", "Timeout"]
