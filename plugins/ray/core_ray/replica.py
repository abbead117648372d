"""CoreReplica: what a replica of Ray Serve runs, a core.Server.

calls by handle ─► [infer, stream] ─► core.Server ◄─ its own HTTP and gRPC ports
Serve's HTTP proxy ─► [__call__] ─► HTTP port of the server
Serve's gRPC proxy ─► [GrpcMethods] ─► gRPC port of the server
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response as StarletteResponse

import core
from core.errors import CoreError, invalid, unavailable, unsupported
from core.request import NEWEST
from core_ray import logs, ports
from core_ray.forwarding import HttpForwarder, Receive, Scope, Send
from core_ray.grpc_proxy import GrpcForwarder, GrpcMethods
from core_ray.reports import Reports
from core_ray.request_id import request_id
from core_ray.response import Response
from core_ray.signals import LoadSignals
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

logger = logging.getLogger("core")

_MEMBERS = ("models",)  # of user_config


class CoreReplica(GrpcMethods):
    """The class of a deployment whose replicas serve a model repository. Subclasses may add methods.

    options   those of core.Server, by name. http_port, grpc_port and metrics_port open ports of the
              replica: each the first free one from there on
    The models are loaded when the replica starts. It fails with the error of a model that does not load.
    """

    def __init__(self, **options: Any):
        logs.follow(logger)
        wanted = ports.taken_from(options)
        self._server = _started(core.Server(**options))
        self._ports = {
            name: ports.open_port(self._server, name, first, address)
            for name, (first, address) in wanted.items()
        }
        self._wanted = wanted
        self._forwarder = HttpForwarder(self._url(), request_id)
        self._forwarded: Forwarded | None = None
        self._grpc = GrpcForwarder(self._grpc_target, request_id)
        self._signals = LoadSignals(self._server)
        self._reports = Reports(self._server)
        self._reports.start()
        self._turn = asyncio.Lock()  # of reconfigure
        self._chosen: set[str] = set()  # models that user_config has loaded

    def _url(self) -> str:
        """Return the URL at which this process reaches its server's HTTP port."""
        scheme = "https" if HttpOptions.of(self._server.options).has_tls else "http"
        return f"{scheme}://{self._reached('http')}"

    async def _grpc_target(self) -> str:
        """Return host and port at which this process reaches its server's gRPC port.

        Raises CoreError(UNSUPPORTED) if the port uses TLS.
        """
        if GrpcOptions.of(self._server.options).has_tls:
            raise unsupported(
                "the gRPC ports of the replicas use TLS, and Serve's gRPC proxy reaches them without: call "
                "the ports, or remove grpc_use_ssl"
            )
        return await asyncio.to_thread(self._reached, "grpc")

    def _reached(self, name: str) -> str:
        """Return host and port at which this process reaches a frontend; open it if it has no port yet."""
        _, address = self._wanted.get(name, (0, ports.LOOPBACK))
        if name not in self._ports:
            self._ports[name] = ports.open_port(self._server, name, 0, ports.LOOPBACK)
        return ports.reached_at(address, self._ports[name])

    async def infer(
        self,
        model: str,
        inputs: Mapping[str, Any],
        *,
        timeout: float | None = None,
        **fields: Any,
    ) -> Response:
        """Send a request to a model and return its only response: `await handle.infer.remote(…)`.

        The arguments are those of core.Server.infer; the id is by default that of Serve's request. Raises
        core.CoreError. The end of the task cancels the request.
        """
        fields.setdefault("id", request_id())
        found = await self._server.infer_async(model, inputs, timeout=timeout, **fields)
        return Response.of(found)

    async def stream(
        self,
        model: str,
        inputs: Mapping[str, Any],
        *,
        timeout: float | None = None,
        **fields: Any,
    ) -> AsyncIterator[Response]:
        """Iterate over the responses of a model: `handle.options(stream=True).stream.remote(…)`."""
        fields.setdefault("id", request_id())
        async for each in self._server.stream_async(model, inputs, timeout=timeout, **fields):
            yield Response.of(each)

    async def metadata(self, model: str = "", version: int = NEWEST) -> dict[str, Any]:
        """Return the metadata of a model (inputs, outputs, versions) or of the server."""
        return await asyncio.to_thread(self._server.metadata, model, version)

    async def ports(self) -> dict[str, int]:
        """Return frontend → port of this replica, for the frontends whose ports are options."""
        return {name: port for name, port in self._ports.items() if name in self._wanted}

    async def __call__(self, request: Request) -> Forwarded:
        """Answer a request of Serve's HTTP proxy, by the routes of the server's HTTP port.

        Raises CoreError(UNSUPPORTED) if the port requires certificates of clients.
        """
        if self._forwarded is None:
            ports.check_http(self._server)
            self._forwarded = Forwarded(self._forwarder)
        return self._forwarded

    async def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        """Load the models of `user_config["models"]`, and unload those of the last call that it lacks.

        The replica serves meanwhile. Serve calls it with the user_config of the deployment, at the start and
        after each change. Raises CoreError(INVALID) for another member, and the errors of loads.
        """
        wanted = _models_of(user_config)
        async with self._turn:
            for name in sorted(wanted - self._chosen):
                await self._server.load_async(name)
                self._chosen.add(name)
            for name in sorted(self._chosen - wanted):
                await self._server.unload_async(name)
                self._chosen.discard(name)

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Return the signals of WaitPolicy. Serve calls it if the deployment has an autoscaling_config."""
        return await asyncio.to_thread(self._signals.read)

    async def check_health(self) -> None:
        """Raise CoreError(UNAVAILABLE) if a loaded model has no instance left that can serve.

        Serve starts another replica in place of one that raises, or does not return, several times.
        """
        if not await self._server.check_async():
            raise unavailable(
                "a loaded model has no instance that can serve; the log has the reason"
            )

    async def __del__(self) -> None:
        """Finish the accepted requests of the replica's own ports, and unload the models."""
        if (server := getattr(self, "_server", None)) is not None:
            self._forwarder.close()
            await self._grpc.close()
            await asyncio.to_thread(self._reports.end)
            await asyncio.to_thread(server.stop)


def _started(server: core.Server) -> core.Server:
    """Start a server. The error of a failed start has the reason of each model: `serve status` shows it."""
    with logs.errors_of(logger) as reasons:
        try:
            return server.start()
        except CoreError as error:
            raise CoreError(error.kind, "\n".join([error.message, *reasons])) from None


class Forwarded(StarletteResponse):  # type: ignore[misc]  # its types are not installed everywhere
    """A response that is sent as it arrives from the server's HTTP port. One object answers all requests."""

    def __init__(self, forwarder: HttpForwarder):
        super().__init__()
        self._forwarder = forwarder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._forwarder(scope, receive, send)


def _models_of(user_config: Any) -> set[str]:
    """Return the names in user_config["models"]. Raises CoreError(INVALID) for anything else in it."""
    expected = "give {models: [names]}"
    if not isinstance(user_config, Mapping):
        raise invalid(f"user_config is a {type(user_config).__name__}: {expected}")
    for member in user_config:
        if member not in _MEMBERS:
            raise invalid(f"user_config has '{member}', which is unknown: {expected}")
    names = user_config.get("models", [])
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise invalid(f"user_config has models: {names!r}: {expected}")
    return set(names)
