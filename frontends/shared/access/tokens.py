"""The file of tokens: one line for each token, with its hash.

    # name   roles         hash          limits (optional)
    alice    infer         sha256:9f86…  rate=100 burst=200 concurrent=16 tokens=90000
    deploy   read,manage   sha256:60303…

A name may have several lines, so that a new token can replace an old one that is still in use.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from core.errors import invalid
from frontends.shared.access.limits import Limits
from frontends.shared.access.roles import ROLES

_PREFIX = "core_"  # lets secret scanners find a token that was committed to a repository
_LIMITS = ("rate", "burst", "concurrent", "tokens")  # fields of Limits
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]{0,127}")
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class TokenHolder:
    """The holder of a token, from one line of the file.

    limits   None if the line has none; then the limits in the server's options hold
    """

    name: str
    roles: frozenset[str]
    limits: Limits | None


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 of a token. No slow hash is necessary, because a token has 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def new_token() -> str:
    """Return a new random token."""
    return _PREFIX + secrets.token_urlsafe(32)


def line_of(name: str, roles: list[str], token: str, limits: Limits | None = None) -> str:
    """Return the line of a token in the file. Raises CoreError(INVALID) for an invalid name, role, limit."""
    shown = [name, ",".join(roles), f"sha256:{digest_of(token).hex()}"]
    if limits is not None:
        shown += [
            f"{key}={f'{value:.9f}'.rstrip('0').rstrip('.')}"
            for key in _LIMITS
            if (value := getattr(limits, key))
        ]
    line = "  ".join(shown)
    read_tokens(line, "a new token")
    return line


def token_file(path: str) -> dict[bytes, TokenHolder]:
    """Read a file of tokens; return SHA-256 of a token → its holder.

    Raises CoreError(INVALID) for a file that cannot be read or used.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise invalid(f"--auth-tokens '{path}' cannot be read: {reason}") from None
    return read_tokens(text, path)


def read_tokens(text: str, origin: str) -> dict[bytes, TokenHolder]:
    """Parse the text of a file of tokens; return SHA-256 of a token → its holder.

    origin   name of the file in errors
    Raises CoreError(INVALID) for an invalid line. The error shows the line's number, but no hash.
    """
    found: dict[bytes, TokenHolder] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{origin}:{number}"
        if len(words) < 3:
            raise invalid(
                f"{where}: expected <name> <role>[,<role>] sha256:<64 hex digits> "
                "[rate=<number>] [burst=<number>] [concurrent=<number>] [tokens=<number>], "
                f"found {len(words)} words"
            )
        digest = _digest(words[2], where)
        if digest in found:
            raise invalid(f"{where}: this token stands in a line above")
        found[digest] = TokenHolder(
            _name(words[0], where), _roles(words[1], where), _limits(words[3:], where)
        )
    return found


def _name(text: str, where: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise invalid(f"{where}: a name has letters, digits and . _ @ : / -, at most 128")
    return text


def _roles(text: str, where: str) -> frozenset[str]:
    roles = frozenset(text.split(","))
    if unknown := sorted(roles - set(ROLES)):
        raise invalid(f"{where}: there is no role '{unknown[0]}'; roles are {', '.join(ROLES)}")
    return roles


def _digest(text: str, where: str) -> bytes:
    found = _HASH.fullmatch(text)
    if found is None:
        raise invalid(
            f"{where}: the third word must be sha256: and 64 hex digits in lower case; "
            "core token makes such lines"
        )
    return bytes.fromhex(found[1])


def _limits(words: list[str], where: str) -> Limits | None:
    if not words:
        return None
    found: dict[str, float] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in _LIMITS or key in found:
            raise invalid(f"{where}: limits are rate=, burst=, concurrent= and tokens=, each once")
        found[key] = _number(key, value, where)
    return Limits(
        found.get("rate", 0.0),
        found.get("burst", 0.0),
        int(found.get("concurrent", 0)),
        int(found.get("tokens", 0)),
    )


def _number(key: str, text: str, where: str) -> float:
    form = r"[0-9]{1,9}" if key in ("concurrent", "tokens") else r"[0-9]{1,9}(\.[0-9]{1,9})?"
    if re.fullmatch(form, text) is None:
        raise invalid(f"{where}: {key}= takes a number of at least 0")
    return float(text)
