"""TLS of a frontend: its certificates, their use by asyncio, and their renewal."""

from __future__ import annotations

import asyncio
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import invalid
from frontends.shared.watched_files import WatchedFiles

# Time in which a client acknowledges the end of a connection (RFC 8446, 6.1). All data was sent before:
# without the acknowledgement nothing is lost, and the shutdown of the server does not wait for it.
_GOODBYE_S = 2.0


@dataclass(frozen=True)
class Certificates:
    """The PEM files in the options of one frontend."""

    frontend: str  # prefix of its options in error texts: "http"
    certificate: str  # the server's certificate and intermediate certificates
    key: str  # of the server, without a password
    root: str  # certificates of the issuers of clients' certificates, or ""
    mutual: bool  # whether clients must present a certificate

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that are set; the frontend watches these files."""
        return tuple(path for path in (self.certificate, self.key, self.root) if path)

    @property
    def what(self) -> str:
        """The name of these files in the log."""
        return f"certificates of {self.frontend}"

    @classmethod
    def of(cls, frontend: str, options: Any) -> Certificates:
        """Return the Certificates that the flags of a frontend name; nothing is read."""
        flags = ("server_cert", "server_key", "root_cert", "use_ssl_mutual")
        return cls(frontend, *(getattr(options, f"{frontend}_{flag}") for flag in flags))

    def context(self, protocol: str) -> ssl.SSLContext:
        """Read and check the files; return a context for a server of `protocol` (a name of ALPN).

        Raises CoreError(INVALID) for a file that is not named, cannot be read, or is invalid.
        """
        self.pem("server-key", self.key)
        self.pem("server-cert", self.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols([protocol])
        try:
            # With the password "" OpenSSL refuses an encrypted key instead of a prompt on the terminal.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise invalid(
                f"--{self.frontend}-server-cert '{self.certificate}' and --{self.frontend}-server-key "
                f"'{self.key}' are no certificate with its unencrypted key: {error}"
            ) from None
        if self.mutual or self.root:
            self.pem("root-cert", self.root)
            try:
                context.load_verify_locations(self.root)
            except (ssl.SSLError, OSError) as error:
                raise invalid(
                    f"--{self.frontend}-root-cert '{self.root}' holds no certificates: {error}"
                ) from None
        if self.mutual:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def pem(self, flag: str, path: str) -> bytes:
        """Return the bytes of a flag's file. Raises CoreError(INVALID) if the flag names no readable file."""
        if not path:
            raise invalid(
                f"--{self.frontend}-use-ssl needs a PEM file; name it with --{self.frontend}-{flag}"
            )
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise invalid(
                f"--{self.frontend}-{flag} '{path}' cannot be read: {error.strerror}"
            ) from None


class RenewableContext(ssl.SSLContext):
    """A TLS context that wraps each new connection with `newest`. Open connections keep their context.

    Renewal replaces the whole context instead of its files, so that removed root certificates are not trusted
    any more and their sessions are not resumed.
    """

    newest: ssl.SSLContext

    @classmethod
    def of(cls, certificates: Certificates, protocol: str) -> RenewableContext:
        """Return a context of these files. Raises CoreError(INVALID) if one of them cannot be used."""
        found = cls(ssl.PROTOCOL_TLS_SERVER)
        found.newest = certificates.context(protocol)
        return found

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """Return the SSL object of a new connection. asyncio and uvloop call it."""
        return self.newest.wrap_bio(*arguments, **named)


def listening(
    certificates: Certificates | None, protocol: str, files: WatchedFiles
) -> dict[str, Any]:
    """Return the TLS arguments for create_server of the running loop.

    certificates   None for a listener without TLS: the arguments are empty
    files          gets the PEM files to watch; new connections use the newest content of them
    Raises CoreError(INVALID) if a file cannot be used.
    """
    if certificates is None:
        return {}
    given = certificates
    context = RenewableContext.of(given, protocol)

    def renew() -> None:
        context.newest = given.context(protocol)

    files.add(given.what, given.paths, renew)
    found: dict[str, Any] = {"ssl": context}
    # asyncio's loop in Python 3.10 does not know ssl_shutdown_timeout; uvloop does in any Python.
    own = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
    if sys.version_info >= (3, 11) or not own:
        found["ssl_shutdown_timeout"] = _GOODBYE_S
    return found
