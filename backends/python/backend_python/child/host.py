"""Translate a model's calls of triton_python_backend_utils into messages to the server."""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from backend_python import protocol
from backend_python.api.errors import TritonModelException
from backend_python.api.host import Key, may_call, no_inference, running_outer
from backend_python.api.request import InferenceRequest, MemoryType
from backend_python.api.response import InferenceResponse
from backend_python.child import messages
from backend_python.child.connection import Connection
from backend_python.child.mailboxes import Mailbox
from backend_python.strings import speakable

if TYPE_CHECKING:
    from backend_python.child.lent import Lending

# After this many answers, or bytes, the sender asks the server for a GO before it sends more.
EACH_ANSWERS = 64
EACH_BYTES = 4 * 2**20


class ChildHost:
    """The only Host of a child. Thread-safe."""

    def __init__(self, connection: Connection):
        self.model_directory = ""
        self.backend_settings: dict[str, str] = {}  # of the backend that runs instead of a model.py
        self.serving = False
        self.calls_models = False  # there is a server whose models can be called
        self._connection = connection
        self._has_senders = False  # True after the first response sender was made
        self.encoder = messages.AnswerEncoder()
        self._dropped: deque[tuple[str, int]] = deque()  # objects that no longer exist here

    def log(self, level: int, file: str, line: int, text: str) -> None:
        content = protocol.to_json([level, speakable(file), line, speakable(text)])
        self._connection.send(protocol.LOG, 0, content)

    def send(
        self,
        key: Key,
        wanted: frozenset[str],
        response: InferenceResponse | None,
        flags: int,
        pace: ChildPace,
    ) -> None:
        batch, index = key
        parts = self.encoder.one(response, wanted, key, bool(flags))
        if not flags:
            flags = pace.next(parts.size)
        fixed = protocol.INDEX_FLAGS.pack(index, flags)
        self._connection.send_tensors(protocol.RESPOND, batch, fixed, parts)

    def pace(self, key: Key) -> ChildPace:
        self._has_senders = True
        return ChildPace(self._connection, key)

    def is_cancelled(self, key: Key) -> bool:
        return self._connection.is_cancelled(key)

    def abandon(self, key: Key) -> None:
        lending = self.encoder.lending
        if lending is not None:
            lending.staying.pop(key, None)
        self._connection.abandon(key)

    def call(self, operation: str, arguments: dict[str, Any]) -> Any:
        dropped = []
        while self._dropped:
            dropped.append(self._dropped.popleft())
        content = protocol.to_json([operation, arguments, dropped])
        if len(content) > protocol.MOST_BYTES:
            raise TritonModelException(
                f"{operation}: {len(content)} bytes are too many for one call, "
                f"at most {protocol.MOST_BYTES} are possible"
            )
        reply, _ = self._connection.wait(self._connection.call(content))
        answer = json.loads(reply)
        if "error" in answer:
            raise TritonModelException(answer["error"])
        return answer["value"]

    def infer(self, request: InferenceRequest, decoupled: bool, *, blocking: bool) -> ChildAnswers:
        if not (may_call(self) and self.calls_models):
            raise TritonModelException(no_inference(may_call(self)))
        lending = self.encoder.lending
        if lending is not None:
            return self._infer_there(lending, request, decoupled)
        parts, fields = messages.call(request, decoupled, self._outer())
        return ChildAnswers(self._connection, self._connection.infer(parts, fields))

    def _infer_there(
        self, lending: Lending, request: InferenceRequest, decoupled: bool
    ) -> ChildAnswers:
        """Call another model, with tensors on GPUs.

        Inputs stay on a GPU if the called model takes them there. Outputs stay if the caller prefers that.
        """
        takes = any(map(messages.is_there, request._inputs)) and self._takes_gpu(request)
        lends = lending.lends() if takes else None
        preferred = request.preferred_memory
        prefers = preferred is not None and (
            preferred.memory_type == MemoryType.TRITONSERVER_MEMORY_GPU
        )
        gpus = lending.gpus() if prefers else None
        try:
            parts, fields = messages.call(request, decoupled, self._outer(), lends, gpus)
            return ChildAnswers(self._connection, self._connection.infer(parts, fields))
        except BaseException:
            if lends is not None:
                lends.undo()
            raise

    def _outer(self) -> int | None:
        """Return the number of the batch to which a call on this thread belongs; None if it is unknown.

        A call on another thread than execute's belongs to the batch that is executed. If the model has
        response senders, such a thread may answer an earlier batch, so the batch is unknown.
        """
        outer = running_outer.get(None)
        if outer is not None:
            batch: int | None = outer.batch
            return batch
        connection = self._connection
        if self._has_senders and threading.get_ident() != connection.thread:
            return None
        return connection.executing

    def _takes_gpu(self, request: InferenceRequest) -> bool:
        """Return whether a model takes inputs on a GPU. False for an unknown model: its call will fail."""
        asked = {"name": request.model_name, "version": request.model_version}
        try:
            return bool(self.call("takes_gpu", asked))
        except TritonModelException:
            return False

    def drop(self, what: str, number: int) -> None:
        self._dropped.append((what, number))  # the next call sends it: destructors must not wait


class ChildPace:
    """The pace of a response sender: it sends answers no faster than the client takes them.

    Not thread-safe: use it from one thread at a time.
    """

    __slots__ = ("_answers", "_box", "_bytes", "_connection", "_key")

    def __init__(self, connection: Connection, key: Key):
        self._connection = connection
        self._key = key
        self._answers = 0  # since the last ASKS
        self._bytes = 0
        self._box: Mailbox | None = None  # receives the GO to the last ASKS

    def next(self, size: int) -> int:
        """Count an answer of `size` bytes, and return the flags to send with it.

        When EACH_ANSWERS or EACH_BYTES is reached, wait for the GO to the last ASKS and return ASKS. On a
        thread that runs an event loop, neither wait nor ask.
        """
        self._answers += 1
        self._bytes += size
        if self._answers < EACH_ANSWERS and self._bytes < EACH_BYTES:
            return 0
        asyncio = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:
            return 0
        self._answers = self._bytes = 0
        if self._box is not None:
            self._connection.wait(self._box)
        self._box = self._connection.ask(self._key)
        return protocol.ASKS


class ChildAnswers:
    """The responses to one INFER. Not thread-safe: use it from one thread at a time."""

    def __init__(self, connection: Connection, box: Mailbox):
        self._connection = connection
        self._box = box
        self._over = False

    def wait(self) -> InferenceResponse | None:
        while not self._over:
            if (response := self._response(*self._connection.wait(self._box))) is not None:
                return response
        return None

    async def arrival(self) -> InferenceResponse | None:
        while not self._over:
            if (response := self._response(*await self._connection.arrival(self._box))) is not None:
                return response
        return None

    def cancel(self) -> None:
        if not self._over:
            self._connection.stop(self._box)

    def drop(self) -> None:
        if not self._over:
            self._over = True
            self._connection.drop(self._box)

    def _response(self, content: bytes, region: Any) -> InferenceResponse | None:
        response, self._over = messages.response(content, region)
        return response

    def __del__(self) -> None:
        self.drop()
