from collections.abc import Buffer as _Buffer  # type: ignore[attr-defined, unused-ignore]

def bytes_for(slots: int, workers: int) -> int:
    """Return the number of bytes for `slots` slots with counters for `workers` workers."""

class Buckets:
    """The use of limits by callers, in memory that several processes may share.

    Each caller has a slot, found by its key: a bucket of requests that fills with time, and a count of
    requests in flight for each worker. No call locks or waits. Use it on one thread of each process.

    memory    writable, aligned to 8 bytes, initially zero; kept until the end of this object
    worker    number of this process, from 0 on: the worker of the requests in flight that it counts
    """

    def __init__(self, memory: _Buffer, slots: int, workers: int, worker: int) -> None:
        """Raises ValueError for memory that is too small or not aligned."""
    def claim(self, first: int, count: int, key: int, now_ns: int) -> int:
        """Return the slot of a key among `count` slots from `first` on; -1 if all slots are in use.

        Another caller may claim a slot with a full bucket and without requests in flight.
        """
    def enter(self, slot: int, key: int, most: int) -> int:
        """Count one more request in flight; return the new count of all workers.

        Returns 0 and counts nothing if that exceeds `most`, -1 if the slot has another key.
        """
    def leave(self, slot: int) -> None:
        """Count one request in flight less, for this worker."""
    def take(self, slot: int, key: int, interval_ns: int, tolerance_ns: int, now_ns: int) -> int:
        """Take one request from the bucket.

        Returns 0, or the nanoseconds until the bucket has a request, or -1 if the slot has another key.

        interval_ns    time in which the bucket gains one request
        tolerance_ns   time in which it gains all but one of the requests that it holds when full
        now_ns         time.monotonic_ns(), which the processes of a machine share
        """
    def inside(self, slot: int) -> int:
        """Return the number of requests in flight of all workers."""
    def key(self, slot: int) -> int:
        """Return the key of the owner of a slot; 0 for a free slot."""
    def clear(self, worker: int) -> None:
        """Set the requests in flight of a worker that has ended to 0."""
