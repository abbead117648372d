"""ServerTls: how the router connects to servers with TLS.

options ─► ServerCertificates ─► [ServerTls] ─► arguments of a connection, or of a request of aiohttp
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from frontends.shared.tls import RenewableContext

if TYPE_CHECKING:
    from core_router.servers.server import Address
    from frontends.shared.watched_files import WatchedFiles

_HTTP, _GRPC = "http/1.1", "h2"  # names of ALPN
_WITHOUT: Mapping[str, Any] = {}
# Codes of OpenSSL: the certificate has no known issuer; it is for another name or address.
_NO_ISSUER, _OTHER_NAME = (18, 19, 20, 21), (62, 64)


@dataclass(frozen=True)
class ServerCertificates:
    """The options about TLS to the servers.

    root          PEM file with the issuers of the servers' certificates; "" for those of the system
    certificate   PEM file with the router's own certificate for servers that ask for one, or ""
    key           PEM file with its key, without a password, or ""
    name          that all servers' certificates must have; "" for the host in --servers
    is_insecure   whether any certificate will do
    """

    root: str = ""
    certificate: str = ""
    key: str = ""
    name: str = ""
    is_insecure: bool = False

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise invalid(
                "--server-client-cert and --server-client-key belong together: name both or none"
            )
        if self.is_insecure and (self.root or self.name):
            raise invalid(
                "--server-insecure accepts any certificate, so that --server-root-cert and --server-name "
                "have no meaning; leave these out, or --server-insecure"
            )

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are named."""
        return tuple(each for each in (self.root, self.certificate, self.key) if each)

    def context(self, protocol: str) -> ssl.SSLContext:
        """Read the files; return a context for connections to servers of `protocol`, a name of ALPN.

        Raises CoreError(INVALID) for a file that cannot be used.
        """
        if self.root:
            _check_readable("--server-root-cert", self.root)
        try:
            context = ssl.create_default_context(cafile=self.root or None)
        except (ssl.SSLError, OSError) as error:
            raise invalid(
                f"--server-root-cert '{self.root}' holds no certificates: {error}"
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols([protocol])
        if self.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            _check_readable("--server-client-cert", self.certificate)
            _check_readable("--server-client-key", self.key)
            try:
                # With the password "" OpenSSL refuses an encrypted key instead of a prompt on the terminal.
                context.load_cert_chain(self.certificate, self.key, password="")
            except (ssl.SSLError, OSError, ValueError) as error:
                raise invalid(
                    f"--server-client-cert '{self.certificate}' and --server-client-key '{self.key}' are no "
                    f"certificate with its unencrypted key: {error}"
                ) from None
        return context


def _check_readable(option: str, path: str) -> None:
    try:
        Path(path).read_bytes()
    except OSError as error:
        raise invalid(f"{option} '{path}' cannot be read: {error.strerror}") from None


class ServerTls:
    """The contexts of all connections to servers. Event loop only.

    New connections use the newest content of the files.
    """

    def __init__(self, certificates: ServerCertificates | None):
        """Read the files. Raises CoreError(INVALID) for one that cannot be used.

        certificates   None if no server is known to use TLS: a context is made when one does
        """
        self._certificates = certificates or ServerCertificates()
        self._contexts: dict[str, RenewableContext] = {}  # by name of ALPN
        if certificates is not None:
            self._renew()

    def watch(self, files: WatchedFiles) -> None:
        """Read the files again when they change."""
        if paths := self._certificates.paths:
            files.add("certificates for the servers", paths, self._renew)

    def to_http(self, address: Address) -> Mapping[str, Any]:
        """Return the TLS arguments of a connection to the port for HTTP; none without TLS."""
        return self._arguments(_HTTP, address) if address.tls.http else _WITHOUT

    def to_grpc(self, address: Address) -> Mapping[str, Any]:
        """Return the TLS arguments of a connection to the port for gRPC."""
        return self._arguments(_GRPC, address) if address.tls.grpc else _WITHOUT

    def to_metrics(self, address: Address) -> Mapping[str, Any]:
        """Return the TLS arguments of a connection to the port of metrics."""
        return self._arguments(_HTTP, address) if address.tls.metrics else _WITHOUT

    def _arguments(self, protocol: str, address: Address) -> Mapping[str, Any]:
        if not self._contexts:
            self._renew()
        name = self._certificates.name or address.tls.name or address.host
        return {"ssl": self._contexts[protocol], "server_hostname": name}

    def _renew(self) -> None:
        # Both are read before one is used.
        for protocol, newest in [
            (each, self._certificates.context(each)) for each in (_HTTP, _GRPC)
        ]:
            if protocol not in self._contexts:
                self._contexts[protocol] = RenewableContext(ssl.PROTOCOL_TLS_CLIENT)
            self._contexts[protocol].newest = newest


def reason_of(error: BaseException) -> str:
    """Return why a connection to a server could not be opened, with what to do about certificates."""
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        code, text = inner.verify_code, inner.verify_message
        said = f"its certificate is not accepted: {text.rstrip('.')}"
        if code in _NO_ISSUER:
            return f"{said}; name the file with its issuer's by --server-root-cert"
        if code in _OTHER_NAME:
            return f"{said}; say by --server-name which name it has"
        return said
    if isinstance(inner, ssl.SSLError):
        if inner.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return "the port does not speak TLS; write http:// for it"
        return f"no connection with TLS: {inner.reason or inner}"
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
