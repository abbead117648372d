"""What a person needs when the server is ready: how many models, where, and a command to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from frontends.terminal.example import curl

if TYPE_CHECKING:
    from core.options import Listener, Options
    from core.server import InferenceServer

_TITLES = {"http": "HTTPService", "grpc": "GRPCInferenceService", "metrics": "Metrics Service"}
"""Name of a listener → its title in the log."""

_EVERYWHERE = ("", "0.0.0.0", "::", "[::]")

_MOST_NAMES = 10

_FAILED = ("UNAVAILABLE", "Not loaded")
_UNLOADED = "UNAVAILABLE: unloaded"
"""Beginnings of a status in ModelIndex.table, and the one of a version that somebody has unloaded."""


def summary(server: InferenceServer, ports: Mapping[str, int]) -> str:
    """Return what the line "ready: " says: number of models, first address, names of models that failed.

    ports   title of a service in the log → the port on which it listens
    """
    serving, failed = models(server)
    parts = [f"{len(serving)} {'model' if len(serving) == 1 else 'models'}"]
    parts += first_address(server.options, ports)
    if failed:
        more = f" and {len(failed) - _MOST_NAMES} more" if len(failed) > _MOST_NAMES else ""
        parts.append(f"{len(failed)} failed: {', '.join(failed[:_MOST_NAMES])}{more}")
    return ", ".join(parts)


def places(options: Options, ports: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return ("gRPC", address), ("console", URL) and ("metrics", URL), each only if its port is known.

    gRPC is left out if it is the first address (`first_address`), which is shown before these.
    """
    listening = listeners(options, ports)
    found = []
    if (grpc := listening.get("grpc")) is not None and "http" in listening:
        found.append(("gRPC", address(grpc)))
    if "console" in ports and "http" in listening:
        found.append(("console", f"{url(listening['http'])}/console"))
    if (metrics := listening.get("metrics")) is not None:
        found.append(("metrics", f"{url(metrics)}/metrics"))
    return found


def to_try(server: InferenceServer, ports: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return [("try", command that sends a request to the first model by name that serves)].

    Return [] if no model serves, if HTTP does not listen, or if there is no such command (example.curl).
    """
    serving, _ = models(server)
    http = listeners(server.options, ports).get("http")
    if serving and http is not None and (command := curl(server, serving[0], http, url(http))):
        return [("try", command)]
    return []


def first_address(options: Options, ports: Mapping[str, int]) -> list[str]:
    """Return [URL of HTTP], or [address of gRPC] if HTTP does not listen; [] if neither does."""
    listening = listeners(options, ports)
    if (http := listening.get("http")) is not None:
        return [url(http)]
    return [address(listening["grpc"])] if "grpc" in listening else []


def models(server: InferenceServer) -> tuple[list[str], list[str]]:
    """Return (names of the models with a version that is ready, names of other ones that failed to load).

    A model that is unloaded, or still loads, is in neither.
    """
    rows = server.manager.table()
    serving = {name for name, _, status in rows if status == "READY"}
    failed = {
        name
        for name, _, status in rows
        if status.startswith(_FAILED) and not status.startswith(_UNLOADED)
    }
    return sorted(serving), sorted(failed - serving)


def listeners(options: Options, ports: Mapping[str, int]) -> dict[str, Listener]:
    """Return name → listener of those with a known port or a Unix domain socket.

    ports   title of a service in the log → the port on which it listens; it replaces port 0, which lets the
            system choose one
    """
    found = (
        replace(each, port=each.port or ports.get(_TITLES.get(each.name, ""), 0))
        for each in options.listeners()
    )
    return {each.name: each for each in found if each.port or each.is_unix}


def address(listener: Listener) -> str:
    """Return `host:port` for clients on this machine; host is localhost for a listener on every interface.

    Return the address itself, unix:/path, for a Unix domain socket.
    """
    if listener.is_unix:
        return listener.address
    host = listener.address
    if host in _EVERYWHERE:
        host = "localhost"
    elif ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{host}:{listener.port}"


def url(listener: Listener) -> str:
    """Return the URL for clients on this machine; for a Unix domain socket its address, unix:/path."""
    if listener.is_unix:
        return listener.address
    return f"{'https' if listener.encrypted else 'http'}://{address(listener)}"
