"""GrpcFrontend: the gRPC side of one server."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from core.server import InferenceServer
from frontends.grpc import transport
from frontends.grpc.engine import engine
from frontends.grpc.options import GrpcOptions
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.shared.context import context_of

logger = logging.getLogger("core")


class GrpcFrontend:
    """Serves `server` over gRPC. Loop thread only.

    port   port on which it listens; 0 before the start
    """

    name = "grpc"

    def __init__(self, server: InferenceServer):
        """Make methods and engine.

        Raises CoreError(UNAVAILABLE) if --grpc-engine is not installed, and what `context_of` raises.
        """
        self._options = server.options
        self._intake = RequestsInFlight()
        context = context_of(server)
        self._engine = engine(
            methods(server, self._intake),
            server.options,
            context.files,
            server.account,
            context.observers,
        )
        self.port = 0

    @property
    def enabled(self) -> bool:
        return GrpcOptions.of(self._options).allow_grpc

    async def start(self) -> None:
        """Bind and listen.

        Raises CoreError(UNAVAILABLE) if the address is taken, CoreError(INVALID) for certificates
        that cannot be read.
        """
        self.port = await self._engine.start()
        chosen = replace(GrpcOptions.of(self._options), grpc_port=self.port)
        logger.info("Started GRPCInferenceService at %s", transport.address(chosen))

    async def stop(self, timeout_s: float) -> None:
        """Refuse new inference requests, wait for those in flight, then close the port and connections.

        All of it takes about `timeout_s` seconds at most; what still runs then is cancelled.
        """
        end_s = time.monotonic() + timeout_s
        await self._intake.drain(timeout_s)
        await self._engine.stop(max(0.0, end_s - time.monotonic()))
