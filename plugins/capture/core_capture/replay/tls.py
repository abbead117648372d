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
    verifies      whether the certificate of the server must be signed, and be for the host of the URL
    """

    root: str = ""
    certificate: str = ""
    key: str = ""
    verifies: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the context of a client of HTTPS."""
        try:
            context = ssl.create_default_context(cafile=self.root or None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except OSError as error:
            raise self._unusable(error) from None
        if not self.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials of a client of gRPC, which always verifies the server."""
        import grpc

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
