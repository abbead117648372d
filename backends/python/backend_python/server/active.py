"""The batches in a child process, and the record of short executions that allows more than one."""

from __future__ import annotations

from collections.abc import Callable

from core.batch import Batch

SHORT_NS = (
    100_000  # while executions are shorter, the server sends a batch before the last one ends
)
AHEAD = 16  # the most batches that a child may then have
_TRIAL = 16  # so many executions in a row must be short before the server does so

Done = Callable[[BaseException | None], None]


class Active:
    """A batch in a child process, until all its requests have their last answer.

    done      called when the execution is over; None after that
    whole     True until `open` is first read or `close` is called. While it is True, no request has had its
              last answer
    """

    __slots__ = ("_cancel", "_open", "_sent", "batch", "done", "number")

    def __init__(self, number: int, batch: Batch, done: Done, cancel: Callable[[int, int], None]):
        self.number = number
        self.batch = batch
        self.done: Done | None = done
        self._cancel = cancel  # sends a cancellation to the child: number, index
        self._open: set[int] | None = None  # None while `whole` is True
        self._sent: set[int] | None = None  # requests whose cancellation was sent to the child

    @property
    def whole(self) -> bool:
        return self._open is None

    @property
    def open(self) -> set[int]:
        """The requests without their last answer. The code that sends a last answer removes its request."""
        if self._open is None:
            self._open = set(range(len(self.batch.requests)))
        return self._open

    @property
    def answered(self) -> bool:
        """Whether any request of the batch has had its last answer."""
        return self._open is not None and len(self._open) < len(self.batch.requests)

    def close(self) -> None:
        """Mark all requests of the batch as answered, so that `open` is empty."""
        self._open = set()

    def cancelled(self) -> None:
        """Report to the child each open request that is cancelled and that was not reported yet."""
        if self._sent is None:
            self._sent = set()
        for i in sorted(self.open - self._sent):
            if self.batch.requests[i].cancelled:
                self._sent.add(i)
                self._cancel(self.number, i)


def behind_the_first(active: dict[int, Active]) -> dict[int, Active]:
    """Remove and return the batches that wait behind the one that a child executes, by number.

    The child executes the first batch whose execution is not over; this batch stays. A later batch stays too
    if any of its requests has had its last answer.
    """
    waiting = [number for number, one in active.items() if one.done is not None]
    return {n: active.pop(n) for n in waiting[1:] if not active[n].answered}


class Took:
    """A record of execution times.

    short   True if at least the last 16 executions were all shorter than SHORT_NS
    """

    __slots__ = ("_seen", "short")

    def __init__(self) -> None:
        self.short = False
        self._seen = 0

    def add(self, ns: int) -> bool:
        """Record an execution of `ns` nanoseconds. Return whether `short` has changed."""
        if ns >= SHORT_NS:
            changed, self.short = self.short, False
            self._seen = 0
            return changed
        if self.short:
            return False
        self._seen += 1
        self.short = self._seen >= _TRIAL
        return self.short
