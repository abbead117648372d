"""Address: where a server listens, from the text of -u."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.errors import invalid, unavailable


@dataclass(frozen=True)
class Address:
    """A host and a port, or the path of a Unix socket with port 0.

    tls      whether the text asks for it by https:// or grpcs://
    prefix   path before all paths of the server, without a slash at its end
    """

    host: str
    port: int
    tls: bool = False
    prefix: str = ""

    @property
    def authority(self) -> str:
        """Return what HTTP names as the host."""
        if not self.port:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def shown(self) -> str:
        return f"unix:{self.host}" if not self.port else self.authority

    def numeric(self) -> str:
        """Return the host as numbers, or the path of the socket. Raises CoreError if its name is unknown."""
        if not self.port:
            return self.host
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise unavailable(f"no address is known of the host '{self.host}': {error}") from None
        # A name such as localhost may have several; take the one where somebody listens.
        for family, kind, _, _, where in found:
            with socket.socket(family, kind) as tried:
                tried.settimeout(2)
                if tried.connect_ex(where) == 0:
                    return str(where[0])
        return str(found[0][4][0])


def model_path(model: str, version: str) -> str:
    """Return the path of a model in the v2 protocol; of its newest version for ""."""
    return f"/v2/models/{model}" + (f"/versions/{version}" if version else "")


def parse_address(text: str, protocol: str) -> Address:
    """Return the address of '', 'HOST', 'HOST:PORT', 'http://…' or 'unix:PATH'. Raises CoreError."""
    default = 8001 if protocol == "grpc" else 8000
    if text.startswith("unix:"):
        path = text[5:]
        path = path[2:] if path.startswith("///") else path
        if not path:
            raise invalid(f"'{text}' names no Unix socket; expected unix:PATH")
        return Address(path, 0)
    parts = urlsplit(text if "://" in text else f"//{text or 'localhost'}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("", "http", "https", "grpc", "grpcs"):
        raise invalid(
            f"'{text}' is no address of a server; expected HOST:PORT, http://HOST:PORT or unix:PATH"
        )
    tls = parts.scheme in ("https", "grpcs")
    if port is None:
        port = {"https": 443, "http": 80}.get(parts.scheme, default)
        if parts.scheme == "http" and host in ("localhost", "127.0.0.1", "::1"):
            port = default
    return Address(host, port, tls, parts.path.rstrip("/"))
