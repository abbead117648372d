"""ServerStream: the part of a client's stream that one server answers.

InferStream ─► [ServerStream] ─► server ─► messages ─► InferStream
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from time import monotonic
from typing import TYPE_CHECKING

from core_router.grpc.messages import MessageScanner
from core_router.grpc.native.blocks import status_of
from core_router.grpc.pool import Attempt
from core_router.grpc.statuses import UNAVAILABLE, timeout_of

if TYPE_CHECKING:
    from core_router.choice.sequences import SequenceParameters
    from core_router.grpc.infer_stream import InferStream
    from core_router.grpc.native.link import ServerLink
    from core_router.servers.server import Server
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route


REQUEST_BYTES = 350
"""What a request that waits takes of memory, without the bytes of its message and response."""


class StreamRequest:
    """One request of a stream.

    message        with its prefix; b"" if it is not kept
    id             that the client gave it; "" for none
    sequence       that it belongs to; None for none
    is_decoupled   whether it may have any number of responses
    server_model   where it is
    tried          where it has been
    response       None until it has come; responses of earlier requests are sent first
    sent_s         time of the monotonic clock when it was sent to that server
    """

    __slots__ = (
        "id",
        "is_decoupled",
        "message",
        "response",
        "route",
        "sent_s",
        "sequence",
        "server_model",
        "tried",
    )

    def __init__(
        self,
        message: bytes,
        id: str,
        route: Route,
        sequence: SequenceParameters | None,
        is_decoupled: bool = False,
    ) -> None:
        self.message = message
        self.id = id
        self.is_decoupled = is_decoupled
        self.route = route
        self.sequence = sequence
        self.server_model: ServerModel | None = None
        self.tried: tuple[ServerModel, ...] = ()
        self.response: bytes | None = None
        self.sent_s = 0.0

    @property
    def model(self) -> str:
        """The name of its model, as it was asked for."""
        return self.route.target.model


class ServerStream:
    """The stream to one server. Event loop only.

    waiting      requests without their response, in order; one response each
    decoupled    name of a model → its ServerModel, of models with any number of responses
    is_certain   whether the server's index says of all models of its requests how often they answer
    has_answered whether a response has come for a request of a model that is not known to be decoupled
    is_ended     whether the server takes no more requests on it
    """

    def __init__(self, stream: InferStream, server: Server):
        self.server = server
        self.waiting: deque[StreamRequest] = deque()
        self.decoupled: dict[str, ServerModel] = {}
        self.is_certain = True
        self.has_answered = False
        self.is_ended = False
        # Models whose requests one response each answers.
        self._plain: dict[str, ServerModel] = {}
        self._repeats = False  # whether a response has come for which no request waits
        self._answered_id = ""  # of the last response
        self._stream = stream
        self._scanner = MessageScanner()
        self._early: list[bytes] = []  # messages before the connection is open
        self._is_finished = False
        self._attempt = Attempt(self, server.any_model, monotonic())

    # for the stream of the client -----------------------------------------

    def open(self) -> None:
        """Get a connection, for what waits. The stream may end at once, if it fails."""
        link = self._stream.port.pool_of(self.server).take(self._attempt)
        if link is not None:
            self.connected(self._attempt, link)

    def send(self, message: bytes) -> bool:
        """Send a message. Return False if the client should wait before it sends more."""
        attempt = self._attempt
        if attempt.link is None:
            self._early.append(message)
            return False
        return attempt.link.write(attempt.id, message)

    def finish(self) -> None:
        """Send no more requests."""
        self._is_finished = True
        if self._attempt.link is not None:
            self._attempt.link.finish(self._attempt.id, None)

    @property
    def has_decoupled(self) -> bool:
        """Whether any number of responses may follow: of models that are decoupled, or have shown to be."""
        return self._repeats or bool(self.decoupled)

    def add(self, request: StreamRequest, found: ServerModel) -> None:
        """Count a request that is sent next. If one for a model counts as decoupled here, all do."""
        model = request.model
        if model in self.decoupled:
            if not request.is_decoupled:
                self._stream.shown({model}, [request])
            return
        if not request.is_decoupled:
            self.waiting.append(request)
            self._plain[model] = found
            self.is_certain = self.is_certain and bool(found.name)
        elif model in self._plain:
            self._plain[model] = found
            self._shows({model})  # a reload has made it decoupled
            return
        else:
            self.decoupled[model] = found
        found.begin()

    def request_of(
        self, has_failed: bool, model: str, id: str, goes_on: bool
    ) -> StreamRequest | None:
        """Return the request that a response answers; None if that may have other responses.

        A server answers the requests for plain models once each, in their order. What differs from that shows
        a decoupled model, whatever the configuration says: `InferStream.shown` gets its requests.

        has_failed, model, id, goes_on   what the response says; "" for no model and no id
        """
        if model and model in self.decoupled:
            return None
        self.has_answered = True
        before, self._answered_id = self._answered_id, id
        if not model:
            return self._refused(id, before)
        if model in self._plain:
            earlier: set[str] = set()
            for each in self.waiting:
                if each.model == model:
                    break
                earlier.add(each.model)
            else:
                self._shows({model})  # it has answered, and answers again
                return None
            if earlier:
                self._shows(earlier)  # their responses did not come in their turn
        elif not self.waiting:  # otherwise, the server may know a model by another name
            self._repeats = True
            return None
        first = self.waiting[0]
        is_second = bool(id) and id == before and first.id != id
        is_other = bool(first.id) and first.id != id and not has_failed
        if goes_on or is_second or is_other:
            self._shows({first.model})
            return None
        return first

    def _refused(self, id: str, before: str) -> StreamRequest | None:
        """Return the request of a response without a model: the server has refused it."""
        first = self.waiting[0] if self.waiting else None
        if first is None or first.id == id:
            return first
        if id and id == before:
            self._repeats = True
            return None
        return None if self.decoupled else first

    def _shows(self, models: Set[str]) -> None:
        """Count models as decoupled: their responses pass as they come."""
        shown = [each for each in self.waiting if each.model in models]
        self.waiting = deque(each for each in self.waiting if each.model not in models)
        for model in models:
            found = self.decoupled[model] = self._plain[model]
            found.begin()
        for each in shown:
            if each.server_model is not None:
                each.server_model.left()
        self._stream.shown(models, shown)

    def resume(self) -> None:
        """Let the server send more: the client takes it."""
        if self._attempt.waits_for_room and self._attempt.link is not None:
            self._attempt.waits_for_room = False
            self._attempt.link.open_window(self._attempt.id)

    def cancel(self) -> None:
        """End the stream: the client has left, or gets an error."""
        self._leave()
        attempt = self._attempt
        if attempt.link is not None:
            attempt.link.cancel(attempt.id)
        else:
            self._stream.port.pool_of(self.server).leave(attempt)

    def _leave(self) -> None:
        self.is_ended = True
        for model in self.decoupled.values():
            model.left()
        self.decoupled.clear()

    # for the attempt ------------------------------------------------------

    def connected(self, attempt: Attempt, link: ServerLink) -> None:
        if self.is_ended:
            return
        end_s = self._stream.deadline_s
        timeout = timeout_of(end_s - monotonic()) if end_s else b""
        attempt.id = link.request(self._stream.head, timeout, attempt)
        if attempt.id < 0:
            self.lost(attempt, 0)
            return
        attempt.link = link
        early, self._early = self._early, []
        for message in early:
            link.write(attempt.id, message)
        if self._is_finished:
            link.finish(attempt.id, None)
        self._stream.may_read()

    def not_connected(self, attempt: Attempt, reason: str) -> None:
        self._end(UNAVAILABLE, reason, None)

    def answered(
        self,
        attempt: Attempt,
        head: bytes | None,
        data: bytes | None,
        trailers: bytes | None,
        is_over: bool,
    ) -> None:
        if self.is_ended:
            return
        attempt.head = head or attempt.head
        if data is not None:
            has_room = True
            for message in self._scanner.feed(data):
                has_room = self._stream.answered(self, attempt.head, message) and has_room
                if self.is_ended:
                    return
            if has_room and not attempt.waits_for_room and attempt.link is not None:
                attempt.link.open_window(attempt.id)
            else:
                attempt.waits_for_room = True
        if is_over and not self.is_ended:
            block = trailers if trailers is not None else attempt.head
            self._end(status_of(block), "", block)

    def lost(self, attempt: Attempt, error: int) -> None:
        self._end(UNAVAILABLE, "the connection ended", None)

    def move(self, attempt: Attempt) -> None:
        if attempt.link is not None:
            attempt.link.cancel(attempt.id)
        self._end(UNAVAILABLE, "the server no longer answers", None)

    def may_write(self, attempt: Attempt) -> None:
        self._stream.may_read()

    def _end(self, status: int, text: str, block: bytes | None) -> None:
        if self.is_ended:
            return
        had_decoupled = self.has_decoupled
        self._leave()
        self._stream.server_ended(self, status, text, block, had_decoupled)
