"""ResponseIterator: the responses to a call of a decoupled model."""

from __future__ import annotations

from backend_python.api.host import Answers
from backend_python.api.response import InferenceResponse


class ResponseIterator:
    """The value of `exec(decoupled=True)` and `await async_exec(decoupled=True)`. One thread at a time.

    `for` blocks its thread, `async for` does not. An error is one of the responses; more may follow. After
    the last response, a second loop yields the same responses again. If the iterator is deleted before the
    end, its call is cancelled.
    """

    def __init__(self, answers: Answers):
        self._answers = answers
        self._responses: list[InferenceResponse] = []
        self._next = 0
        self._finished = False

    def __iter__(self) -> ResponseIterator:
        self._begin()
        return self

    def __next__(self) -> InferenceResponse:
        if self._next == len(self._responses) and not self._finished:
            self._add(self._answers.wait())
        if (response := self._known()) is None:
            raise StopIteration
        return response

    def __aiter__(self) -> ResponseIterator:
        self._begin()
        return self

    async def __anext__(self) -> InferenceResponse:
        if self._next == len(self._responses) and not self._finished:
            self._add(await self._answers.arrival())
        if (response := self._known()) is None:
            raise StopAsyncIteration
        return response

    def cancel(self) -> None:
        """Ask the called model to stop; the iterator still yields its last responses, or an error."""
        self._answers.cancel()

    def _begin(self) -> None:
        if self._finished:
            self._next = 0

    def _add(self, response: InferenceResponse | None) -> None:
        if response is None:
            self._finished = True
        else:
            self._responses.append(response)

    def _known(self) -> InferenceResponse | None:
        if self._next == len(self._responses):
            return None
        self._next += 1
        return self._responses[self._next - 1]
