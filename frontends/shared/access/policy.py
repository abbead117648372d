"""AccessPolicy: authenticates callers and checks their roles. Loop thread only.

    Credentials ─► identify ─► Caller ─► check roles ─► begin_call (limits) ─► ActiveCall

Verified callers are cached by the hash of their token, so a second call costs one hash and two look-ups.
Secrets are compared by their hashes only.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from core.errors import forbidden
from frontends.shared.access.active_call import ActiveCall
from frontends.shared.access.bucket_table import BucketTable
from frontends.shared.access.caller_bucket import Clock
from frontends.shared.access.credentials import Credentials, kind_and_name, network_of
from frontends.shared.access.limits import Allowance, Allowances, Limits
from frontends.shared.access.roles import Requirement, known_categories
from frontends.shared.access.tokens import digest_of, token_file
from frontends.shared.access.unauthenticated import Unauthenticated
from frontends.shared.options import SharedOptions
from frontends.shared.watched_files import WatchedFiles

if TYPE_CHECKING:
    from frontends.shared.access.jwt import Issuer

_MOST_CALLERS = 10_000  # in the cache
_LONGEST_CACHED_S = 300.0  # then a token is verified again, even if it is valid for longer


@dataclass(slots=True, eq=False)
class Caller:
    """The sender of a request, identified by a token, else by a client certificate, else by its address."""

    policy: AccessPolicy
    name: str  # for logs; the address of a caller without a token and a certificate
    roles: frozenset[str]  # none for a caller without a token
    expires_s: float  # seconds since 1970
    known: bool  # whether a token or a certificate identified the caller
    allowance: Allowance | None  # limits of the caller; None for no limit
    generation: int  # of the policy when the caller was verified
    has_token: bool = False

    @property
    def text(self) -> str:
        """The caller in error texts, and as jobs keep it on disk: "caller 'conc'", "address '10.0.0.7'"."""
        return f"{'caller' if self.known else 'address'} '{self.name}'"

    def is_valid(self) -> bool:
        """Return whether the caller has not expired, and no file was read again since its verification."""
        policy = self.policy
        return self.generation == policy.generation and policy.now_s() < self.expires_s

    def begin_call(self) -> ActiveCall:
        """Return a call of this caller, counted in its limits. Raises Exhausted if one is reached."""
        active = ActiveCall()
        active.begin(self)
        return active


class AccessPolicy:
    """Identifies the callers of one server, and checks their roles and limits. Created by `of`."""

    def __init__(
        self,
        options: SharedOptions,
        *,
        clock: Clock = time.monotonic,
        now: Clock = time.time,
        table: Callable[[], BucketTable | None] = lambda: None,
    ):
        """Raises CoreError for files that cannot be read or used.

        table   returns the table that all workers share; None: this process counts alone
        """
        self.generation = 0  # grows when a file is read again; then callers are verified again
        self.now_s = now  # seconds since 1970, against which expiry is checked
        self._token_path = options.auth_tokens
        self._tokens = token_file(self._token_path) if self._token_path else {}
        self._issuer: Issuer | None = None
        if options.auth_jwks:
            self._issuer = import_module("frontends.shared.access.jwt").Issuer(options)
        self._open = frozenset(options.auth_open if self._knows_callers else known_categories())
        self._limits = _limits_of(options)
        self._allowances = Allowances(clock, table())
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()

    @classmethod
    def of(
        cls, options: SharedOptions, table: Callable[[], BucketTable | None] = lambda: None
    ) -> AccessPolicy | None:
        """Return the policy, or None if the options set no tokens, no keys of issuers and no limits.

        Raises CoreError for files that cannot be read or used.
        """
        if not (options.auth_tokens or options.auth_jwks or _limits_of(options)):
            return None
        return cls(options, table=table)

    @property
    def _knows_callers(self) -> bool:
        """Whether the server can verify tokens: it has a token file, or the keys of an issuer."""
        return bool(self._token_path) or self._issuer is not None

    def watch(self, files: WatchedFiles) -> None:
        if self._token_path:
            files.add("--auth-tokens", [self._token_path], self._read_tokens)
        if self._issuer is not None:
            files.add("--auth-jwks", [self._issuer.path], self._read_issuer)

    def identify(self, credentials: Credentials) -> Caller:
        """Return the caller with these credentials.

        A caller without a token has no roles. Its name is that in its certificate, else its IPv4 address, or
        its /64 network of IPv6. A server that cannot verify tokens ignores them and treats every caller so.
        Raises Unauthenticated for an invalid token.
        """
        if not self._knows_callers or not credentials.secret:
            known = bool(credentials.certificate)
            name = credentials.certificate or network_of(credentials.address)
            return self._caller(name, frozenset(), self._limits, self._longest_s(), known=known)
        digest = digest_of(credentials.secret)
        found = self._callers.get(digest)
        if found is None or not found.is_valid():
            found = self._callers[digest] = self._verified(credentials.secret, digest)
            if len(self._callers) > _MOST_CALLERS:
                self._callers.popitem(last=False)
        self._callers.move_to_end(digest)
        return found

    def allowance_of(self, text: str) -> Allowance | None:
        """Return the allowance of a caller by its text (Caller.text), for work that outlives its call.

        None for a caller without limits, and for other text. The limits are those that hold now: of the first
        token with this name that has some, else of the options.
        """
        (kind, name), limits = kind_and_name(text), self._limits
        if not kind:
            return None
        if kind == "caller":
            own = (each.limits for each in self._tokens.values() if each.name == name)
            limits = next((each for each in own if each is not None), limits)
        return self._allowances.of(name, limits, known=kind == "caller")

    def authorize(self, credentials: Credentials, wanted: Requirement) -> Caller:
        """Return the caller with these credentials, who may do what is `wanted`.

        Raises what `identify` and `check` raise.
        """
        caller = self.identify(credentials)
        self.check(caller, wanted)
        return caller

    def check(self, caller: Caller, wanted: Requirement) -> None:
        """Check that the category is open to every caller, or that the caller has a sufficient role.

        Otherwise raises CoreError(FORBIDDEN), or Unauthenticated for a caller without a token.
        """
        if wanted.category in self._open or not caller.roles.isdisjoint(wanted.roles):
            return
        if not caller.has_token:
            raise Unauthenticated(
                "this API needs a token: 'authorization: Bearer <token>' or 'x-api-key: <token>'",
                shown=False,
            )
        has = ", ".join(sorted(caller.roles)) or "no role"
        raise forbidden(f"this API needs the role {wanted.text}; {caller.text} has {has}")

    def is_exempt(self, wanted: Requirement) -> bool:
        """Return whether a call is neither checked nor counted: a health call, if health is open to all."""
        return wanted.category == "health" and "health" in self._open

    def _verified(self, secret: str, digest: bytes) -> Caller:
        # The duration of the look-up depends on the hash, which reveals nothing about the token.
        holder = self._tokens.get(digest)
        if holder is not None:
            limits = self._limits if holder.limits is None else holder.limits
            expires_s = self._longest_s()
            return self._caller(holder.name, holder.roles, limits, expires_s, has_token=True)
        if self._issuer is None or secret.count(".") != 2:
            raise Unauthenticated("the token is not known", shown=True)
        found = self._issuer.holder(secret)
        expires_s = min(found.expires_s, self._longest_s())
        return self._caller(found.name, found.roles, self._limits, expires_s, has_token=True)

    def _caller(
        self,
        name: str,
        roles: frozenset[str],
        limits: Limits,
        expires_s: float,
        *,
        known: bool = True,
        has_token: bool = False,
    ) -> Caller:
        allowance = self._allowances.of(name, limits, known=known)
        return Caller(self, name, roles, expires_s, known, allowance, self.generation, has_token)

    def _longest_s(self) -> float:
        return self.now_s() + _LONGEST_CACHED_S

    def _read_tokens(self) -> None:
        self._tokens = token_file(self._token_path)
        self._forget()

    def _read_issuer(self) -> None:
        assert self._issuer is not None
        self._issuer.read()
        self._forget()

    def _forget(self) -> None:
        self._callers.clear()
        self.generation += 1


def _limits_of(options: SharedOptions) -> Limits:
    return Limits(
        options.limit_rate, options.limit_burst, options.limit_concurrency, options.limit_tokens
    )
