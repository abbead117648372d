"""SharedOptions: the flags that all frontends share: security, the access log and Unix domain sockets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.options import Options, Section, group
from core.options.values import STRING, SWITCH, integer
from frontends.shared import secure
from frontends.shared.forms import (
    AMOUNT,
    LISTED,
    MODE,
    RESTRICTED_CATEGORIES,
    grouped,
    some_of,
)

_server = group("Server")
_logging = group("Logging")
_security = group("Security")


@dataclass(kw_only=True)
class SharedOptions(Section):
    # fmt: off
    unix_socket_mode: str = _server(MODE, "0600",
        "Permissions of the Unix domain sockets on which the server listens.")
    access_log: str = _logging(STRING, "",
        "Append a JSON line to this file for each request; - is standard output (docs/operate/logging.md).")
    access_log_rate: int = _logging(integer(1), 1,
        "Log one of N requests to the access log, and every request that fails.")
    secure: bool = _security(SWITCH, False,
        "Use secure defaults: identified callers only, no changes of the server, other machines only over "
        "TLS (docs/operate/security.md).")
    secure_without_tls: bool = _security(SWITCH, False,
        "With --secure, serve other machines without TLS, for example behind a proxy with TLS.")
    auth_tokens: str = _security(STRING, "",
        "File with the hashes of tokens and the names of callers; `core token` makes its lines.")
    auth_jwks: str = _security(STRING, "",
        "File with the public keys (JWK set) of the issuer of JWT. Needs core[jwt].")
    auth_jwt_issuer: str = _security(STRING, "", "Required claim iss of a JWT.")
    auth_jwt_audience: str = _security(STRING, "", "Required element of the claim aud of a JWT.")
    auth_jwt_algorithms: tuple[str, ...] = _security(LISTED, ("RS256", "PS256", "ES256", "EdDSA"),
        "Permitted signature algorithms of a JWT, separated by commas.")
    auth_jwt_leeway_secs: int = _security(integer(0, 3600), 30,
        "Permitted difference in seconds from the clock of the issuer of JWT.")
    auth_jwt_roles_claim: str = _security(STRING, "roles",
        "Claim of a JWT with the caller's roles, such as scope or realm_access.roles.")
    auth_jwt_role: dict[str, tuple[str, ...]] = _security(
        grouped(("infer", "read", "manage")), {},
        "Value in that claim that stands for a role; by default the values are the roles.")
    auth_open: tuple[str, ...] = _security(some_of((*RESTRICTED_CATEGORIES, "metrics")), ("health",),
        "Kinds of requests that need no token, separated by commas; none for no kind.")
    limit_rate: float = _security(AMOUNT, 0.0,
        "Requests per second of a caller. 0: no limit. --auth-tokens may set other limits. Without a token "
        "a caller is identified by its address.")
    limit_burst: float = _security(AMOUNT, 0.0,
        "Requests that a caller may send at once after a pause. 0: those of one second.")
    limit_concurrency: int = _security(integer(), 0,
        "Simultaneous requests of a caller. 0: no limit.")
    reload_secs: float = _security(AMOUNT, 10.0,
        "Seconds between two checks of certificates, tokens and keys for changes. 0: check on SIGHUP only.")
    # fmt: on

    @property
    def reads_again(self) -> bool:
        """Whether the options name an access log, a file of tokens or a file of keys."""
        return bool(self.access_log or self.auth_tokens or self.auth_jwks)

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Sequence[str]:
        """Set the defaults of --secure; return lines for the log."""
        return secure.harden(given)

    def check(self, options: Options) -> None:
        """Raise CoreError(INVALID) if the options do not meet the demands of --secure."""
        secure.check(self, options.listeners())
