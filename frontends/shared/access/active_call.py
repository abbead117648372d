"""ActiveCall: one call, from the check of its caller until its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.errors import CoreError
from frontends.shared.access.limits import Allowance
from frontends.shared.access_log import AccessLog, AccessLogEntry

if TYPE_CHECKING:
    from frontends.shared.access.policy import Caller
    from frontends.shared.usage_meter import UsageMeter


class ActiveCall:
    """A call that counts in the limits of its caller, and may have an entry in the access log.

    It continues when the token of its caller expires; later requests within it are checked again. Loop
    thread only.
    """

    __slots__ = ("_allowance", "_log", "_renew", "_slot", "caller", "entry", "error", "number")

    def __init__(self) -> None:
        self.caller: Caller | None = None  # None: exempt from the access policy
        self.number = 0  # of the caller, if plugins ask for it (CallerNames)
        self.error: CoreError | None = None  # why the call is refused
        self.entry: AccessLogEntry | None = None  # of the access log, written at the end
        self._log: AccessLog | None = None
        self._allowance: Allowance | None = None
        self._slot = -1  # in which the allowance counts this call
        self._renew: Callable[[], Caller] | None = None

    def begin(self, caller: Caller) -> None:
        """Set the caller, and count the call in its limits, if it has any. Raises Exhausted at a limit."""
        self.caller = caller
        if caller.allowance is not None:
            self._slot = caller.allowance.enter()
            self._allowance = caller.allowance

    def record(self, log: AccessLog, entry: AccessLogEntry) -> None:
        self._log = log
        self.entry = entry

    def meter(self, entry: AccessLogEntry | None = None) -> UsageMeter | None:
        """Return what names the caller of a request and counts its tokens; None if nothing needs that.

        entry   of the request in the access log; None for that of the call
        """
        entry = entry or self.entry
        bucket = None if self._allowance is None else self._allowance.usage
        if bucket is None and entry is None and not self.number:
            return None
        # Not above: that module imports this package.
        from frontends.shared.usage_meter import UsageMeter

        return UsageMeter(bucket, entry, self.number)

    def renew_with(self, renew: Callable[[], Caller]) -> None:
        """Let `count_request` check the caller again after its cached identification has expired.

        renew   authorizes the same credentials again; returns their caller
        """
        self._renew = renew

    def count_request(self, *, counts: bool = True) -> None:
        """Count a request within the call, such as a message of a stream, in the limits.

        Before that, check a caller again whose identification has expired (`renew_with`).
        counts   False for the first request, which was counted with the call
        Raises Exhausted; at that check Unauthenticated, or CoreError(FORBIDDEN) if the caller lost its role.
        """
        if self._renew is not None and self.caller is not None and not self.caller.is_valid():
            self.caller = self._renew()
        if counts and self._allowance is not None:
            self._allowance.take()

    def wait(self) -> None:
        """Give back, for good, the call's place among the concurrent requests of its caller.

        Call it before waiting for other requests of that caller, such as those of a job: they need the place.
        """
        if self._allowance is not None:
            self._allowance.leave(self._slot)
            self._slot = -1

    def end(self, status: int = 0, bytes_out: int = 0) -> None:
        """Remove the call from the requests in flight of its caller, and write its log entry, if it has one.

        status, bytes_out   fields of the entry (AccessLogEntry)
        A second call of this method does nothing.
        """
        allowance, self._allowance = self._allowance, None
        if allowance is not None:
            allowance.leave(self._slot)
        log, self._log = self._log, None
        if log is not None and self.entry is not None:
            self.entry.come_from(self.caller)
            log.write(self.entry, status, bytes_out)
