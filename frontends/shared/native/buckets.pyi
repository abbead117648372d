from collections.abc import Buffer as _Buffer  # type: ignore[attr-defined, unused-ignore]

def bytes_for(slots: int, workers: int) -> int:
    """Return how many bytes of memory so many slots of so many workers take."""

class Buckets:
    """What callers have used of their limits, in memory that several processes may share.

    Each caller has a slot, found by its key: a bucket of requests that fills with time, and a count of
    requests in flight for each worker. No call locks or waits. One thread of each process.

    memory    writable, aligned to 8 bytes, all zeros at first; held until the end of this object
    worker    of this process, from 0 on: the only one for which it counts requests in flight
    """

    def __init__(self, memory: _Buffer, slots: int, workers: int, worker: int) -> None:
        """Raises ValueError for memory that is too small or not aligned."""
    def claim(self, first: int, count: int, key: int, now_ns: int) -> int:
        """Return the slot of a key among `count` slots from `first` on; -1 if others have them all.

        A slot whose bucket is full and that has nothing in flight may become another caller's.
        """
    def enter(self, slot: int, key: int, most: int) -> int:
        """Count one more request in flight, and return how many there are then, of all workers.

        Returns 0 and counts nothing if that were more than `most`, -1 if the slot is another key's.
        """
    def leave(self, slot: int) -> None:
        """Count one request in flight fewer."""
    def take(self, slot: int, key: int, interval_ns: int, tolerance_ns: int, now_ns: int) -> int:
        """Take one request out of the bucket.

        Returns 0 if there was one, else the nanoseconds until there is, and -1 if the slot is another key's.

        interval_ns    in which one request comes into the bucket
        tolerance_ns   in which all come but one that a full bucket holds
        now_ns         time.monotonic_ns(), which the processes of a machine share
        """
    def inside(self, slot: int) -> int:
        """Return how many requests are in flight, of all workers."""
    def key(self, slot: int) -> int:
        """Return whose slot it is; 0 for nobody's."""
    def clear(self, worker: int) -> None:
        """A worker has ended: it has nothing in flight any more."""
