"""What the calls of a model become in a child: messages to the server."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from backend_python import protocol
from backend_python.api.errors import TritonModelException
from backend_python.api.host import Key, no_inference
from backend_python.api.request import InferenceRequest
from backend_python.api.response import InferenceResponse
from backend_python.child import messages
from backend_python.child.connection import Connection
from backend_python.strings import speakable


class ChildHost:
    """The one Host of a child. Any thread."""

    def __init__(self, connection: Connection):
        self.model_directory = ""
        self.serving = False
        self._connection = connection
        self._dropped: deque[tuple[str, int]] = deque()  # objects that no longer exist here

    def log(self, level: int, file: str, line: int, text: str) -> None:
        content = protocol.to_json([level, speakable(file), line, speakable(text)])
        self._connection.send(protocol.LOG, 0, content)

    def send(
        self, key: Key, wanted: frozenset[str], response: InferenceResponse | None, flags: int
    ) -> None:
        layout, pieces, size = messages.one(response, wanted)
        batch, index = key

        def fill(memory: memoryview, offset: int, size: int) -> bytes:
            messages.write(memory, offset, pieces)
            return protocol.ANSWER.pack(offset, size, index, flags) + layout

        self._connection.send(protocol.RESPOND, batch, size=size, fill=fill)

    def is_cancelled(self, key: Key) -> bool:
        return self._connection.is_cancelled(key)

    def call(self, operation: str, arguments: dict[str, Any]) -> Any:
        dropped = []
        while self._dropped:
            dropped.append(self._dropped.popleft())
        content = protocol.to_json([operation, arguments, dropped])
        answer = json.loads(self._connection.call(content).content)
        if "error" in answer:
            raise TritonModelException(answer["error"])
        return answer["value"]

    def infer(self, request: InferenceRequest, decoupled: bool) -> Any:
        raise TritonModelException(no_inference(self.serving))

    def drop(self, what: str, number: int) -> None:
        self._dropped.append((what, number))  # goes with the next call: destructors do not wait
