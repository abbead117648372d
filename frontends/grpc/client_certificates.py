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

    Clients of a Unix domain socket have one peer for all of them, and no name.
    """

    def __init__(self, server: InferenceServer | None = None):
        self._names: dict[
            str, list[str]
        ] = {}  # a list for each connection, which `leave` recognizes

    @staticmethod
    def of(server: InferenceServer) -> ClientCertificates | None:
        """Return the table of a server, the same at every call; None if its clients show no certificates."""
        if not GrpcOptions.of(server.options).grpc_use_ssl_mutual:
            return None
        return server.shared(ClientCertificates)

    def enter(self, peer: str, name: str) -> list[str]:
        """Note the name of the client of a connection; return what ends that with `leave`."""
        entry = [name]
        if name and not peer.startswith("unix"):
            self._names[peer] = entry
        return entry

    def leave(self, peer: str, entry: list[str]) -> None:
        """Forget a connection. A later one of the same peer stays."""
        if self._names.get(peer) is entry:
            del self._names[peer]

    def name_of(self, peer: str) -> str:
        """Return the name of the client of a connection; "" if it has shown no certificate."""
        found = self._names.get(peer)
        return "" if found is None else found[0]

    async def close(self) -> None:
        """Forget all, because the server has stopped."""
        self._names.clear()
