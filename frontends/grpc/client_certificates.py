"""ClientCertificates: the names in the certificates of the clients of one server (--grpc-use-ssl-mutual).

engine ─► [enter: peer, name] ─► interceptors ─► [name_of: peer].  A call knows its peer, but no
connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.grpc.options import GrpcOptions

if TYPE_CHECKING:
    from core.server import InferenceServer


class ClientCertificates:
    """Names by the peer of a connection, such as "ipv4:10.0.0.7:50000". Loop thread only.

    Clients of a Unix domain socket have one peer for all of them, and no name. A peer may have connections to
    several addresses of the server. While their names differ, it has no name: a call does not know its own.
    """

    def __init__(self, server: InferenceServer | None = None):
        # By peer: each name, "" without one, with the number of its connections.
        self._names: dict[str, dict[str, int]] = {}

    @staticmethod
    def of(server: InferenceServer) -> ClientCertificates | None:
        """Return the table of a server, the same at every call; None if its clients show no certificates."""
        if not GrpcOptions.of(server.options).grpc_use_ssl_mutual:
            return None
        return server.shared(ClientCertificates)

    def enter(self, peer: str, name: str) -> list[str]:
        """Note the name of the client of a connection; return what ends that with `leave`."""
        if peer.startswith("unix"):
            return []
        counts = self._names.setdefault(peer, {})
        counts[name] = counts.get(name, 0) + 1
        return [name]

    def leave(self, peer: str, entry: list[str]) -> None:
        """Forget a connection. Others of the same peer stay."""
        counts = self._names.get(peer, {})
        for name in entry:
            left = counts.pop(name, 0) - 1
            if left > 0:
                counts[name] = left
        if not counts:
            self._names.pop(peer, None)

    def name_of(self, peer: str) -> str:
        """Return the name of the client of a connection; "" if it has shown no certificate, or if unclear."""
        found = self._names.get(peer, {})
        return next(iter(found)) if len(found) == 1 else ""

    async def close(self) -> None:
        """Forget all, because the server has stopped."""
        self._names.clear()
