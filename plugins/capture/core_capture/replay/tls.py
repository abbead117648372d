"""Tls: the certificates with which a sender reaches a server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import invalid

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True)
class Tls:
    """Files of PEM. The methods raise CoreError(INVALID) for a file that cannot be used.

    root          certificates of those who sign for servers; "" for those of the system
    certificate   of the sender, with those of its signers; "" for none
    key           of that certificate; "" if its file has the key, too
    verifies      whether the certificate of the server must be signed
    names_host    whether it must also be for the host of the URL
    """

    root: str = ""
    certificate: str = ""
    key: str = ""
    verifies: bool = True
    names_host: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the context of a client of HTTPS."""
        try:
            if self.verifies:
                context = ssl.create_default_context(cafile=self.root or None)
                context.check_hostname = self.names_host
            else:
                context = ssl.SSLContext(
                    ssl.PROTOCOL_TLS_CLIENT
                )  # reads no certificates of signers
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except OSError as error:
            raise self._unusable(error) from None
        return context

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials of a client of gRPC, which always verifies the server."""
        import grpc

        self.context()  # gRPC would refuse files that are no PEM at each request, without their names
        try:
            root, certificate, key = (
                Path(each).read_bytes() if each else None
                for each in (self.root, self.certificate, self.key or self.certificate)
            )
        except OSError as error:
            raise self._unusable(error) from None
        return grpc.ssl_channel_credentials(root, key, certificate)

    def _unusable(self, error: OSError) -> Exception:
        files = ", ".join(each for each in (self.root, self.certificate, self.key) if each)
        return invalid(f"cannot use the certificates ({files}): {error}")
