"""check_readers: whether a server may show recorded requests over HTTP."""

from __future__ import annotations

from core.errors import forbidden
from core.options import Options
from core_capture import CATEGORY
from frontends.http.options import HttpOptions
from frontends.shared.options import SharedOptions
from frontends.shared.secure import is_local


def check_readers(options: Options) -> None:
    """Check that the server knows its callers, or that only this machine reaches its HTTP port.

    It knows them by tokens, by certificates of clients, or by a restriction of the category `capture`.
    Raises CoreError(FORBIDDEN) otherwise: a record holds the data of other clients.
    """
    shared, http = SharedOptions.of(options), HttpOptions.of(options)
    if shared.auth_tokens or shared.auth_jwks or http.http_use_ssl_mutual:
        return
    if CATEGORY in http.http_restricted_api or is_local(http.http_address):
        return
    raise forbidden(
        f"other machines reach HTTP at {http.http_address}, and callers need no token: recorded requests are "
        "not shown; set --auth-tokens, --http-restricted-api=capture:<key>=<value> or "
        "--http-address=127.0.0.1"
    )
