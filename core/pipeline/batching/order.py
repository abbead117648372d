"""PreserveOrder: sends responses in the order of their requests (`preserve_ordering`)."""

from __future__ import annotations

from collections import deque

from core.errors import CoreError
from core.pipeline.endpoint import Handler
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply


class PreserveOrder:
    """Handler that holds responses back until all earlier requests have ended.

    Not thread-safe: call from the event loop only.
    """

    def __init__(self, inner: Handler):
        self.inner = inner
        self._replies: deque[_OrderedReply] = deque()
        self._sending = False

    def __call__(self, request: InferenceRequest) -> Reply:
        inner = self.inner(request)
        ordered = _OrderedReply(Reply(request))
        self._replies.append(ordered)
        inner.listen(lambda item, final: self._received(ordered, item, final))
        return ordered.reply

    def _received(
        self, ordered: _OrderedReply, item: InferenceResponse | CoreError | None, final: bool
    ) -> None:
        ordered.items.append((item, final))
        ordered.complete = final
        if self._sending:  # a listener has sent a new request that was answered at once
            return
        self._sending = True
        try:
            self._send()
        finally:
            self._sending = False

    def _send(self) -> None:
        while self._replies:
            first = self._replies[0]
            while first.items:
                first.reply.send(*first.items.popleft())
            if not first.complete:
                return
            self._replies.popleft()


class _OrderedReply:
    """A reply with the items that wait for earlier replies."""

    def __init__(self, reply: Reply):
        self.reply = reply
        self.items: deque[tuple[InferenceResponse | CoreError | None, bool]] = deque()
        self.complete = False
