"""Gate: whether a call may be made. Loop thread only.

    Credentials ─► identify ─► Pass ─► roles enough? ─► limits left? ─► Visit

What was verified is kept for a while by its hash, so a caller that comes again costs a hash and two looks
into tables. Secrets are only ever compared by their hashes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from core.access.credentials import Credentials, network_of
from core.access.demands import CATEGORIES, Demand
from core.access.limits import Allowance, Allowances, Clock, Limits
from core.access.table import BucketTable
from core.access.tokens import digest_of, token_file
from core.errors import Exhausted, Unauthenticated, forbidden
from core.options import Options
from core.watched import WatchedFiles

if TYPE_CHECKING:
    from core.access.jwt import Issuer

_MOST_PASSES = 10_000
_LONGEST_PASS_S = 300.0  # then a token is verified again, whatever it says


class Pass:
    """Who calls, for as long as that holds.

    name        of the caller, for logs; the address of one that nobody knows
    roles       none for one that nobody knows
    known       whether the caller has shown something
    text        the caller in an error: "caller 'conc'", "address '10.0.0.7'"
    allowance   what the caller may still do; None for any number of requests
    """

    __slots__ = (
        "_expires_s",
        "_gate",
        "_generation",
        "allowance",
        "known",
        "name",
        "roles",
        "text",
    )

    def __init__(
        self,
        gate: Gate,
        name: str,
        roles: frozenset[str],
        expires_s: float,
        *,
        known: bool,
    ):
        self.name = name
        self.roles = roles
        self.known = known
        self.text = f"{'caller' if known else 'address'} '{name}'"
        self._gate = gate
        self._generation = gate.generation
        self.allowance: Allowance | None = None
        self._expires_s = expires_s

    def holds(self) -> bool:
        """Whether it is still one: nothing was read again since, and it has not expired."""
        return self._generation == self._gate.generation and self._gate.now_s() < self._expires_s

    def enter(self) -> Visit:
        """A call begins. Raises Exhausted for a caller that has done as much as it may."""
        if self.allowance is None:
            return Visit(self)
        try:
            return Visit(self, self.allowance, self.allowance.enter())
        except Exhausted as error:
            error.caller = self
            raise


class Visit:
    """One call that was let in, until `leave`. It goes on when the token of its caller expires, but for
    requests that are yet to come in it.

    caller   None for a call that is free
    """

    __slots__ = ("_admit", "_allowance", "_slot", "caller")

    def __init__(
        self, caller: Pass | None = None, allowance: Allowance | None = None, slot: int = -1
    ):
        self.caller = caller
        self._allowance = allowance
        self._slot = slot  # in which the allowance counts this call
        self._admit: Callable[[], Pass] | None = None

    def expect(self, admit: Callable[[], Pass]) -> None:
        """More requests may come within the call, each with `again`.

        admit   asks the gate anew for the same caller, when what is known of it does not hold any more
        """
        if self.caller is not None:
            self._admit = admit

    def again(self, *, counts: bool = True) -> None:
        """One more request within the call, as streams have them.

        counts   False for the first one, which was counted with the call
        Raises Exhausted, and Unauthenticated or CoreError(FORBIDDEN) for a caller that may not any more.
        """
        if self._admit is not None and self.caller is not None and not self.caller.holds():
            self.caller = self._admit()
        if counts and self._allowance is not None:
            self._allowance.take()

    def leave(self) -> None:
        """The call is over. A second time does nothing."""
        allowance, self._allowance = self._allowance, None
        if allowance is not None:
            allowance.leave(self._slot)


class Gate:
    """The tokens, issuers and limits of one server. Made by `of`.

    generation   changes when something was read again: what was verified before is verified anew
    now_s        seconds since 1970, for what expires
    """

    def __init__(
        self,
        options: Options,
        *,
        clock: Clock = time.monotonic,
        now: Clock = time.time,
        table: BucketTable | None = None,
    ):
        """Raises CoreError for files that cannot be read or used.

        table   where limits are counted, of all workers together; None: this process counts alone
        """
        self.generation = 0
        self.now_s = now
        self._token_path = options.auth_tokens
        self._tokens = token_file(self._token_path) if self._token_path else {}
        self._issuer = _issuer(options)
        self._open = frozenset(options.auth_open if self._knows_callers else CATEGORIES)
        self._limits = Limits(options.limit_rate, options.limit_burst, options.limit_concurrency)
        self._allowances = Allowances(clock, table)
        self._passes: OrderedDict[bytes, Pass] = OrderedDict()

    @classmethod
    def of(cls, options: Options, table: BucketTable | None = None) -> Gate | None:
        """The gate that the options ask for; None if anybody may do anything. Raises as Gate."""
        limited = options.limit_rate > 0 or options.limit_concurrency > 0
        if not (options.auth_tokens or options.auth_jwks or limited):
            return None
        return cls(options, table=table)

    @property
    def _knows_callers(self) -> bool:
        return bool(self._token_path) or self._issuer is not None

    def watch(self, files: WatchedFiles) -> None:
        """Read tokens and keys again when their files change."""
        if self._token_path:
            files.add("--auth-tokens", [self._token_path], self._read_tokens)
        if self._issuer is not None:
            files.add("--auth-jwks", [self._issuer.path], self._read_issuer)

    def identify(self, credentials: Credentials) -> Pass:
        """Who shows these. Raises Unauthenticated for a secret that is not good, or not any more."""
        if not self._knows_callers or not credentials.secret:
            name = network_of(credentials.address)
            return self._pass(name, frozenset(), self._limits, self._longest_s(), known=False)
        digest = digest_of(credentials.secret)
        found = self._passes.get(digest)
        if found is None or not found.holds():
            found = self._passes[digest] = self._verified(credentials.secret, digest)
            if len(self._passes) > _MOST_PASSES:
                self._passes.popitem(last=False)
        self._passes.move_to_end(digest)
        return found

    def admit(self, credentials: Credentials, wanted: Demand) -> Pass:
        """Who calls, if that one may. Raises Unauthenticated, or CoreError(FORBIDDEN)."""
        caller = self.identify(credentials)
        self.check(caller, wanted)
        return caller

    def check(self, caller: Pass, wanted: Demand) -> None:
        """Raise Unauthenticated, or CoreError(FORBIDDEN), for a caller that may not."""
        if wanted.category in self._open or not caller.roles.isdisjoint(wanted.roles):
            return
        if not caller.known:
            raise Unauthenticated(
                "this API needs a token: 'authorization: Bearer <token>' or 'x-api-key: <token>'",
                shown=False,
            )
        has = ", ".join(sorted(caller.roles)) or "no role"
        error = forbidden(f"this API needs the role {wanted.text}; {caller.text} has {has}")
        error.caller = caller
        raise error

    def is_free(self, wanted: Demand) -> bool:
        """Whether such calls are neither checked nor counted: those of probes, unless that is closed."""
        return wanted.category == "health" and "health" in self._open

    def _verified(self, secret: str, digest: bytes) -> Pass:
        # How long the look takes says something of a hash, and nothing of a token that has it.
        holder = self._tokens.get(digest)
        if holder is not None:
            limits = self._limits if holder.limits is None else holder.limits
            return self._pass(holder.name, holder.roles, limits, self._longest_s(), known=True)
        if self._issuer is None or secret.count(".") != 2:
            raise Unauthenticated("the token is not known", shown=True)
        found = self._issuer.holder(secret)
        expires_s = min(found.expires_s, self._longest_s())
        return self._pass(found.name, found.roles, self._limits, expires_s, known=True)

    def _pass(
        self, name: str, roles: frozenset[str], limits: Limits, expires_s: float, *, known: bool
    ) -> Pass:
        found = Pass(self, name, roles, expires_s, known=known)
        found.allowance = self._allowances.of(name, limits, known=known)
        return found

    def _longest_s(self) -> float:
        return self.now_s() + _LONGEST_PASS_S

    def _read_tokens(self) -> None:
        self._tokens = token_file(self._token_path)
        self._forget()

    def _read_issuer(self) -> None:
        assert self._issuer is not None
        self._issuer.read()
        self._forget()

    def _forget(self) -> None:
        self._passes.clear()
        self.generation += 1


def _issuer(options: Options) -> Issuer | None:
    """Who issues JWT; None without --auth-jwks. Raises CoreError."""
    if not options.auth_jwks:
        return None
    found: Issuer = import_module("core.access.jwt").issuer(options)
    return found
