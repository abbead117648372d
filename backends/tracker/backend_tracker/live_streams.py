"""LiveStreams: the streams of one instance, from the start of a sequence to its end.

request ─► [LiveStreams] ─► its Stream.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from backend_tracker.native.streams import Stream
from core.errors import unavailable
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest

Id = int | str


class LiveStreams:
    """The streams of one instance by correlation id, the one that was used last at the end. Thread-safe.

    The server does not tell a backend that it has ended an idle sequence. So a stream is also forgotten when
    it has had no frame for `patience_s`. That is longer than the idle time of the server, because the server
    starts to count when a request arrives, and a request may wait.

    patience_s   seconds
    begin        makes a stream
    """

    def __init__(self, patience_s: float, begin: Callable[[], Stream]):
        self._patience_s = patience_s
        self._begin = begin
        self._streams: OrderedDict[Id, tuple[Stream, float]] = OrderedDict()
        self._lock = threading.Lock()  # the event loop forgets while the instance executes

    def __len__(self) -> int:
        return len(self._streams)

    def of(self, request: InferenceRequest, now_s: float) -> Stream:
        """Return the stream of a request. It is new for the start of a sequence, and forgotten after its end.

        Raises CoreError(UNAVAILABLE) for a stream that is forgotten.
        """
        id = request.correlation_id
        with self._lock:
            kept = self._streams.pop(id, None)
            if request.flags & SEQUENCE_START:
                kept = (self._begin(), now_s)
            elif kept is None:
                raise unavailable(
                    f"the tracks of sequence {id} are forgotten, because it had no frame for "
                    f"{self._patience_s:g} s; start the sequence again"
                )
            stream = kept[0]
            if not request.flags & SEQUENCE_END:
                self._streams[id] = (stream, now_s)
        return stream

    def forget_idle(self, now_s: float) -> None:
        """Forget the streams without a frame since `patience_s`. Takes time for those only."""
        with self._lock:
            while self._streams:
                id, (_, used_s) = next(iter(self._streams.items()))
                if now_s - used_s < self._patience_s:
                    return
                del self._streams[id]
