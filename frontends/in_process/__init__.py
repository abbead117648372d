"""A frontend without a socket: a Python program calls the server that runs inside it.

    with core.Server(model_repository="models/") as server:
        response = server.infer("m", {"x": array})

thread or task of the program ─► Server ─► CallQueue ─► loop thread: InferenceServer ─► response
"""

from frontends.in_process.functions.specs import Spec
from frontends.in_process.server import Server
from frontends.in_process.streams import AsyncResponseStream, ResponseStream
from frontends.in_process.values import Response, Timeout

__all__ = ["AsyncResponseStream", "Response", "ResponseStream", "Server", "Spec", "Timeout"]
