"""WaitingTable: how many requests of each caller wait for each model, in all workers together.

supervisor ─► create_file ─► each worker maps the file (plugins/workers)
"""

from __future__ import annotations

from frontends.shared.access.bucket_table import BucketRange, BucketTable, Sizes

_SIZES = Sizes(callers=8192, addresses=0, networks=0)


class WaitingTable:
    """The counts of one server, in memory that its workers share. Event loop only.

    file      descriptor from `create_file`, which the caller may close after the constructor
    workers   number of processes that share the memory
    worker    number of this process among them, from 0 on
    """

    def __init__(self, file: int, workers: int, worker: int):
        self._table = BucketTable(file, workers, worker, _SIZES)
        self._counts = self._table.buckets

    @staticmethod
    def create_file(workers: int) -> int:
        """Create the memory; return its descriptor. Raises OSError."""
        return BucketTable.create_file(workers, _SIZES)

    def clear(self, worker: int) -> None:
        """Remove the counts of a worker that has ended."""
        self._table.clear(worker)

    def place_of(self, caller: str, model: str) -> BucketRange:
        """Return where a caller is counted for a model, which has a name for each of its versions."""
        return next(self._table.ranges(caller, f"waiting for {model}", known=True))

    def enter(self, place: BucketRange, most: int) -> int | None:
        """Count a request that waits, and return its slot for `leave`.

        Return None, and count nothing, if `most` requests of the caller wait. Return -1 if there is no slot
        for the caller: each worker then counts for itself.
        """
        while True:
            slot = self._counts.claim(place.first, place.count, place.key, 0)
            if slot < 0:
                return -1
            count = self._counts.enter(slot, place.key, most)
            if count >= 0:
                return slot if count else None

    def leave(self, slot: int) -> None:
        """Count a request no more. `slot` is the result of `enter`."""
        if slot >= 0:
            self._counts.leave(slot)
