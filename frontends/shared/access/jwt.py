"""Tokens of an external issuer: JWT, verified with the issuer's public keys (RFC 7519, RFC 7517).

The only file that imports PyJWT; core[jwt] brings it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import CoreError, invalid, unavailable
from frontends.shared.access.roles import ROLES
from frontends.shared.access.unauthenticated import Unauthenticated
from frontends.shared.options import SharedOptions

try:
    import jwt
    from jwt.exceptions import (
        ExpiredSignatureError,
        ImmatureSignatureError,
        InvalidAudienceError,
        InvalidIssuedAtError,
        InvalidIssuerError,
        MissingRequiredClaimError,
        PyJWTError,
    )
except ImportError as error:
    raise unavailable(
        f"--auth-jwks needs PyJWT and cryptography ({error}); try: pip install 'pyjwt[crypto]'"
    ) from None


@dataclass(frozen=True)
class Holder:
    """The holder of a valid token.

    name        `<issuer>#<sub>`
    expires_s   when the token expires, in seconds since 1970, with --auth-jwt-leeway-secs added
    """

    name: str
    roles: frozenset[str]
    expires_s: float


class Issuer:
    """The public keys of --auth-jwks, and the claims that their tokens must have."""

    def __init__(self, options: SharedOptions):
        """Raises CoreError(INVALID) for a missing or invalid flag, and for an unusable file of keys."""
        for flag in ("issuer", "audience"):
            if not getattr(options, f"auth_jwt_{flag}"):
                raise invalid(
                    f"--auth-jwks needs --auth-jwt-{flag}: without it any token counts that its keys have "
                    "signed, for whatever it was made"
                )
        known = set(jwt.algorithms.get_default_algorithms()) - {"none"}
        if unknown := sorted(set(options.auth_jwt_algorithms) - known):
            raise invalid(
                f"--auth-jwt-algorithms: there is no algorithm '{unknown[0]}'; "
                f"there are {', '.join(sorted(known))}"
            )
        self.path = options.auth_jwks
        self._options = options
        # Value of the claim → role; empty: the values are the roles.
        self._role_of = {
            value: role for role, values in options.auth_jwt_role.items() for value in values
        }
        self._keys = _keys(self.path)

    def read(self) -> None:
        """Read the file of keys again. Raises CoreError(INVALID) and keeps the keys if it is not usable."""
        self._keys = _keys(self.path)

    def holder(self, token: str) -> Holder:
        """Verify the signature and the claims of a token, and return its holder.

        Raises Unauthenticated if one of them is not valid.
        """
        options = self._options
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(token),
                algorithms=list(options.auth_jwt_algorithms),
                issuer=options.auth_jwt_issuer,
                audience=options.auth_jwt_audience,
                leeway=options.auth_jwt_leeway_secs,
                options={"require": ["exp", "sub"]},
            )
        except PyJWTError as error:
            raise _refused(_why(error)) from None
        except (ValueError, RecursionError):
            # PyJWT does not catch these: the HTTP header may hold no text, the token too deep brackets.
            raise _refused("has no valid signature") from None
        return Holder(
            f"{options.auth_jwt_issuer}#{claims['sub']}",
            self._roles(claims),
            float(claims["exp"]) + options.auth_jwt_leeway_secs,
        )

    def _key(self, token: str) -> jwt.PyJWK:
        """Return the key with the name in the token's header, or the only key if the header has no name.

        Raises Unauthenticated if there is not exactly one such key, or if the token's algorithm is not
        permitted or not that of the key; PyJWTError, ValueError or RecursionError for an invalid header.
        """
        head = jwt.get_unverified_header(token)
        name = head.get("kid")
        found = [key for key in self._keys if name is None or key.key_id == name]
        if len(found) != 1:
            raise _refused("is signed with a key that is not in --auth-jwks")
        if head.get("alg") not in self._options.auth_jwt_algorithms or (
            head["alg"] != found[0].algorithm_name
        ):
            raise _refused("is signed with an algorithm that is not allowed for its key")
        return found[0]

    def _roles(self, claims: Mapping[str, Any]) -> frozenset[str]:
        values = _values(claims, self._options.auth_jwt_roles_claim)
        if self._role_of:
            return frozenset(self._role_of[value] for value in values if value in self._role_of)
        return frozenset(values) & frozenset(ROLES)


def _keys(path: str) -> Sequence[jwt.PyJWK]:
    try:
        found = jwt.PyJWKSet.from_json(Path(path).read_text()).keys
    except OSError as error:
        raise invalid(f"--auth-jwks '{path}' cannot be read: {error.strerror}") from None
    except (
        PyJWTError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        # The text of the error is left out; its type is enough for the user.
        raise invalid(
            f"--auth-jwks '{path}' is no set of keys (a JSON object with 'keys'): "
            f"{type(error).__name__}"
        ) from None
    usable = [key for key in found if key.public_key_use in (None, "sig")]
    if not usable:
        raise invalid(f"--auth-jwks '{path}' has no key for signatures")
    return usable


def _values(claims: Mapping[str, Any], path: str) -> list[str]:
    """Return the values of a claim: the strings in a list, or the words of a string such as `scope`.

    path   name of the claim, or names of nested claims with "." between them
    Return [] if there is no such claim, or if it is neither a list nor a string.
    """
    found: Any = claims.get(path)
    if found is None:
        found = claims
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, str):
        return found.split()
    if isinstance(found, list):
        return [each for each in found if isinstance(each, str)]
    return []


_REASONS = (
    (ExpiredSignatureError, "has expired"),
    (ImmatureSignatureError, "is not valid yet"),
    (InvalidIssuedAtError, "was issued in the future"),
    (InvalidAudienceError, "is for another audience"),
    (InvalidIssuerError, "is of another issuer"),
)


def _why(error: PyJWTError) -> str:
    """Return why a token is refused, such as "has expired".

    PyJWT's own text is not used, because it may quote the token.
    """
    if isinstance(error, MissingRequiredClaimError):
        return f"has no claim '{error.claim}'"
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    return "has no valid signature"


def _refused(reason: str) -> CoreError:
    return Unauthenticated(f"the token {reason}", shown=True)
