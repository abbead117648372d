"""InferenceResponseSender: answers to one request, from any thread, one or many."""

from __future__ import annotations

import threading

from backend_python.api.errors import TritonModelException
from backend_python.api.host import Host, Key
from backend_python.api.response import InferenceResponse
from backend_python.api.unanswered import unanswered

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class InferenceResponseSender:
    """From `request.get_response_sender()`. Any thread; it may outlive the execute call.

    If the sender is collected before the last answer, nothing can answer the request any more: the
    host fails it. A request of a decoupled model has its sender from the beginning, so that this holds
    also if the model never asks for the sender.
    """

    __slots__ = (
        "_closed",
        "_decoupled",
        "_host",
        "_key",
        "_lock",
        "_owes",
        "_pace",
        "_sent",
        "wanted",
    )

    def __init__(self, host: Host, key: Key, wanted: frozenset[str], decoupled: bool):
        self._owes = False  # the request waits for an answer, and only this sender can give it
        self._host = host
        self._key = key
        self._pace = host.pace(key)
        self.wanted = wanted
        self._decoupled = decoupled
        self._lock = threading.Lock()  # the answers of one request keep their order
        self._sent = False
        self._closed = False
        self._owes = True
        unanswered.add(id(self))

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send an answer; with TRITONSERVER_RESPONSE_COMPLETE_FINAL, or with that alone, the last.

        Waits while the client is far behind with reading those before.

        TritonModelException if the request has had its last answer, or if its model is not decoupled
        and this would not be its one answer.
        """
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError(f"send() takes an InferenceResponse, found {type(response)}")
        with self._lock:
            self._check(response, flags)
            self._sent = self._sent or response is not None
            self._closed = bool(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            self._host.send(self._key, self.wanted, response, flags, self._pace)
            if self._closed or not self._decoupled:
                self.settle()
            elif self._owes:
                unanswered.gave(id(self))

    def settle(self) -> None:
        """The request has its last answer, or comes again in a later execute."""
        self._owes = False
        unanswered.remove(id(self))

    def __del__(self) -> None:
        if self._owes:
            unanswered.remove(id(self))
            self._host.abandon(self._key)

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answers any more."""
        return self._host.is_cancelled(self._key)

    def _check(self, response: InferenceResponse | None, flags: int) -> None:
        """TritonModelException, in the order in which Triton looks."""
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if response is None and not flags:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if not self._decoupled:
            self._check_only(response)
        if self._closed:
            raise TritonModelException("Unable to send response. Response sender has been closed.")

    def _check_only(self, response: InferenceResponse | None) -> None:
        """A model that is not decoupled sends one response."""
        if response is not None and self._sent:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response."
            )
        if response is None and not self._sent:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before "
                "sending a response."
            )
