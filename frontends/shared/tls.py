"""TLS of a frontend: its certificates, how asyncio listens with them, and that it takes newer ones."""

from __future__ import annotations

import asyncio
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import invalid
from frontends.shared.watched_files import WatchedFiles

# How long a client may take to say that it has heard the end of a connection (RFC 8446, 6.1). The data
# was sent before, so nothing is lost with those who never say it, and the server's end does not wait.
_GOODBYE_S = 2.0


@dataclass(frozen=True)
class Certificates:
    """The PEM files that the options of one frontend name."""

    frontend: str  # the beginning of its options, as errors name them: "http"
    certificate: str  # the server's certificate, and those between it and its root
    key: str  # of the server, without a password
    root: str  # certificates that clients' certificates are checked against, or ""
    mutual: bool  # whether clients must show one

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that there are; what was made from them is made anew when one of them changes."""
        return tuple(path for path in (self.certificate, self.key, self.root) if path)

    @property
    def what(self) -> str:
        """They, for the log."""
        return f"certificates of {self.frontend}"

    @classmethod
    def of(cls, frontend: str, options: Any) -> Certificates:
        """Return the files that the flags of a frontend name."""
        flags = ("server_cert", "server_key", "root_cert", "use_ssl_mutual")
        return cls(frontend, *(getattr(options, f"{frontend}_{flag}") for flag in flags))

    def context(self, protocol: str) -> ssl.SSLContext:
        """The files, read and checked, for a server that speaks `protocol` (a name of ALPN).

        Raises CoreError(INVALID) for a file that is not named, cannot be read or holds something else.
        """
        self.pem("server-key", self.key)
        self.pem("server-cert", self.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols([protocol])
        try:
            # A password, so that a key that has one is refused and not asked about on the terminal.
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
        """What the file of a flag holds. Raises CoreError(INVALID) without a file that can be read."""
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
    """A context that takes each new connection to the newest one. Connections that are there stay.

    A whole context in the place of the older one, and not other files in the same: of certificates
    that were taken away from the root none is trusted any more, and no session that began with them
    is taken up again.
    """

    newest: ssl.SSLContext

    @classmethod
    def of(cls, certificates: Certificates, protocol: str) -> RenewableContext:
        """Raises as Certificates.context."""
        found = cls(ssl.PROTOCOL_TLS_SERVER)
        found.newest = certificates.context(protocol)
        return found

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """What asyncio and uvloop begin a connection with."""
        return self.newest.wrap_bio(*arguments, **named)


def listening(
    certificates: Certificates | None, protocol: str, files: WatchedFiles
) -> dict[str, Any]:
    """What the running loop's create_server is given to listen with these; nothing without any.

    files   watches theirs: new connections get what is in them then
    Raises as Certificates.context.
    """
    if certificates is None:
        return {}
    given = certificates
    context = RenewableContext.of(given, protocol)

    def renew() -> None:
        context.newest = given.context(protocol)

    files.add(given.what, given.paths, renew)
    found: dict[str, Any] = {"ssl": context}
    # asyncio's own loop of Python 3.10 does not wait for a goodbye; uvloop's does, with any Python.
    own = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
    if sys.version_info >= (3, 11) or not own:
        found["ssl_shutdown_timeout"] = _GOODBYE_S
    return found
