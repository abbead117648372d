"""A server whose responses a test gives: what an HttpFrontend needs of one, for tests of streams."""

import asyncio
from types import SimpleNamespace

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import not_found
from core.options import Options
from core.response import Reply
from core.system.account import MemoryAccount
from core.telemetry.tracing import Tracer
from frontends.http.extra_routes import HttpRoutes
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.call_observers import CallObservers
from frontends.shared.context import FrontendContext
from frontends.shared.memory import SharedMemoryRegions
from frontends.shared.watched_files import WatchedFiles

PATIENCE_S = 20
MOST_BYTES = 10_000


class ScriptedServer:
    """One model `m` with the text `x`; passes the Reply of each request to the test."""

    def __init__(self, lane, memory=1 << 30, http_max_input_size=MOST_BYTES, **options):
        self.options = Options.defaults(
            http_address="127.0.0.1",
            http_port=0,
            http_lane=lane,
            http_max_input_size=http_max_input_size,
            **options,
        )
        self.account = MemoryAccount(memory, 0)
        self.control = SimpleNamespace(areas={})
        self.models = self
        self.endpoints = None  # these tests use streams only
        self.tracing = Tracer(self.options)
        self.replies = asyncio.Queue()

    def shared(self, factory):
        if factory is HttpRoutes:
            return HttpRoutes(self)
        if factory is FrontendContext:
            observers = CallObservers()
            return SimpleNamespace(
                policy=None,
                access_log=None,
                names=CallerNames(),
                files=WatchedFiles(0),
                observers=observers,
            )
        return SimpleNamespace(regions=SharedMemoryRegions(False))

    def signature(self, name, version=-1):
        if name != "m":
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return Signature("m", 1, {"x": InputSpec("x", dtypes.BYTES, (1,))}, {}, 0, True)

    def infer(self, request):
        reply = Reply(request)
        self.replies.put_nowait(reply)
        return reply

    async def reply(self):
        return await asyncio.wait_for(self.replies.get(), PATIENCE_S)


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), PATIENCE_S)
