from collections.abc import Buffer as _Buffer  # type: ignore[attr-defined, unused-ignore]

def bytes_for(slots: int, workers: int) -> int:
    """Return the size in bytes of the memory that Buckets needs for these numbers of slots and workers."""

class Buckets:
    """Counters for the rate and concurrency limits of callers, in memory that several processes may share.

    Each caller has a slot, found by its key: a bucket of requests that fills with time, and a count of
    requests in flight for each worker. No call locks or waits. Use it on one thread of each process.
    All methods raise ValueError for a slot or worker that does not exist.

    memory    writable, aligned to 8 bytes, initially zero; kept until the end of this object
    worker    index of this process among the workers, from 0 on: `enter` and `leave` change its counts
    """

    def __init__(self, memory: _Buffer, slots: int, workers: int, worker: int) -> None:
        """Raises ValueError if the memory is too small or not aligned, or `worker` is not below `workers`."""
    def claim(self, first: int, count: int, key: int, now_ns: int) -> int:
        """Return the slot of a key among `count` slots from `first` on, claimed now if it has none.

        Returns -1 if all slots are in use. Another caller may claim a slot with a full bucket and without
        requests in flight. Raises ValueError for the key 0.
        """
    def enter(self, slot: int, key: int, most: int) -> int:
        """Count one more request in flight for this worker; return the new count of all workers.

        Counts nothing and returns 0 if the count would exceed `most`, -1 if the slot has another key.
        """
    def leave(self, slot: int) -> None:
        """Count one request in flight less for this worker; do nothing at 0."""
    def take(self, slot: int, key: int, interval_ns: int, tolerance_ns: int, now_ns: int) -> int:
        """Take one request from the bucket; return 0.

        If it has none, take nothing and return the nanoseconds until it has one; -1 if the slot has another
        key.

        interval_ns    time in which the bucket gains one request
        tolerance_ns   time in which it gains all but one of the requests that it holds when full
        now_ns         time.monotonic_ns(), which the processes of a machine share
        """
    def inside(self, slot: int) -> int:
        """Return the number of requests in flight of all workers."""
    def key(self, slot: int) -> int:
        """Return the key of the owner of a slot; 0 for a free slot."""
    def clear(self, worker: int) -> None:
        """Set the counts of requests in flight of a worker that has ended to 0, in all slots."""
