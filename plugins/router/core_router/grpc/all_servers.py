"""AllServers: calls that all servers answer, and one answer made of theirs.

RoutedCall ─► every server ─► [AllServers] ─► index, statistics, or "done by all"
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from core_router.combined import Done, failures, merged_index, merged_statistics
from core_router.grpc.native.blocks import field, status_of, without
from core_router.grpc.pool import Attempt
from core_router.grpc.statuses import INTERNAL, UNAVAILABLE
from core_router.targets import Purpose

if TYPE_CHECKING:
    from core_router.grpc.native.link import ServerLink
    from core_router.grpc.port import GrpcPort
    from core_router.grpc.routed_call import RoutedCall
    from core_router.servers.server import Server


class Answer(NamedTuple):
    """What one server has answered.

    message   serialized
    error     text of the status if it is not OK
    """

    server: Server
    status: int
    message: bytes
    error: str


class AllServers:
    """Sends calls to all servers that are not down. Event loop only."""

    def __init__(self, port: GrpcPort):
        self._port = port

    async def answer(self, call: RoutedCall, purpose: Purpose, model: str, data: bytes) -> None:
        """Answer a call.

        model   that a request for statistics names, "" for all
        data    the message with its prefix
        """
        router = self._port.router
        servers = router.table.in_use()
        if purpose is Purpose.STATISTICS and model:
            servers = [each for each in servers if model in each.models] or servers
        if not servers:
            call.fail(UNAVAILABLE, "no server is up")
            return
        head = without(call.head, b"grpc-accept-encoding")
        asked = [OwnCall(self._port, each, head, data) for each in servers]
        try:
            answers = await asyncio.gather(*[each.result for each in asked])
        finally:
            for each in asked:
                each.cancel()
        good = [each for each in answers if not each.status]
        if purpose is Purpose.EVERY:
            await router.servers.look()  # the client may use the model at once
            if len(good) < len(answers):
                done = [
                    Done(each.server.name, each.error if each.status else "") for each in answers
                ]
                call.fail(max(each.status for each in answers), failures(done))
                return
        elif not good:
            call.fail(answers[0].status, answers[0].error)
            return
        if len(good) == 1 or purpose is Purpose.EVERY:
            call.answer(good[0].message)
        else:
            # The classes of the messages need numpy, which takes a moment.
            call.answer(await asyncio.to_thread(_merged, purpose, good))


class OwnCall:
    """A call of the router. `result` is done with its Answer."""

    def __init__(self, port: GrpcPort, server: Server, head: bytes, data: bytes):
        self.result: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._server = server
        self._head = head
        self._sent = data
        self._received = b""
        self._is_over = False  # of the call; `gather` may cancel its result before
        self._attempt = Attempt(self, server.any_model, monotonic())
        self._pool = port.pool_of(server)
        link = self._pool.take(self._attempt)
        if link is not None:
            self.connected(self._attempt, link)

    def connected(self, attempt: Attempt, link: ServerLink) -> None:
        if self._is_over:
            return
        attempt.id = link.request(self._head, b"", attempt)
        if attempt.id < 0:
            self._fail("the connection has ended")
            return
        attempt.link = link
        link.write(attempt.id, self._sent)
        link.finish(attempt.id, None)

    def not_connected(self, attempt: Attempt, reason: str) -> None:
        self._fail(reason)

    def answered(
        self,
        attempt: Attempt,
        head: bytes | None,
        data: bytes | None,
        trailers: bytes | None,
        is_over: bool,
    ) -> None:
        attempt.head = head or attempt.head
        if data is not None:
            self._received += data
            if attempt.link is not None:
                attempt.link.open_window(attempt.id)
        if is_over and not self._is_over:
            block = trailers if trailers is not None else attempt.head
            status = status_of(block)
            found = field(block, b"grpc-message") if block is not None else None
            error = unquote(found.decode("ascii", "replace")) if found else f"status {status}"
            status = status if status >= 0 else INTERNAL
            self._end(Answer(self._server, status, self._received[5:], error))

    def lost(self, attempt: Attempt, error: int) -> None:
        self._fail("the connection ended")

    def move(self, attempt: Attempt) -> None:
        self.cancel()
        self._fail("the server is down")

    def may_write(self, attempt: Attempt) -> None:
        pass

    def cancel(self) -> None:
        """End the call, if the server has not."""
        if self._is_over:
            return
        self._is_over = True
        attempt = self._attempt
        if attempt.link is not None:
            attempt.link.cancel(attempt.id)
        else:
            self._pool.leave(attempt)

    def _fail(self, text: str) -> None:
        self._end(Answer(self._server, UNAVAILABLE, b"", text))

    def _end(self, answer: Answer) -> None:
        self._is_over = True
        if not self.result.done():
            self.result.set_result(answer)


def _merged(purpose: Purpose, answers: list[Answer]) -> bytes:
    from google.protobuf.json_format import MessageToDict, ParseDict

    from frontends.grpc.protocol import messages

    made: Any
    found: Any
    if purpose is Purpose.INDEX:
        made, found = messages.RepositoryIndexResponse, []
    else:
        made, found = messages.ModelStatisticsResponse, []
    for each in answers:
        message = made.FromString(each.message)
        found.append((each.server, MessageToDict(message, preserving_proto_field_name=True)))
    if purpose is Purpose.INDEX:
        index = [(server, value.get("models", [])) for server, value in found]
        whole: Any = {"models": merged_index(index)}
    else:
        whole = merged_statistics(_numbers(value) for _, value in found)
    result: bytes = ParseDict(whole, made()).SerializeToString()
    return result


def _numbers(value: Any) -> Any:
    """Return a value of JSON with numbers in place of the texts that stand for those of 64 bits."""
    if isinstance(value, dict):
        texts = ("name", "version")
        return {name: each if name in texts else _numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return int(value) if isinstance(value, str) and value.isdigit() else value
