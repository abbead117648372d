"""InferenceResponseSender: sends one or many responses to a request, from any thread."""

from __future__ import annotations

import threading

from backend_python.api.errors import TritonModelException
from backend_python.api.host import Host, Key
from backend_python.api.response import InferenceResponse
from backend_python.api.unanswered import unanswered

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class InferenceResponseSender:
    """The return value of `request.get_response_sender()`. Any thread; it may outlive the execute call.

    If the sender is deleted before its last response, the host fails the request, because no other object
    can answer it. A request of a decoupled model has a sender from its start, so that this holds also if
    the model never calls get_response_sender.
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
        self._owes = False  # only this sender can give the response that the request waits for
        self._host = host
        self._key = key
        self._pace = host.pace(key)
        self.wanted = wanted
        self._decoupled = decoupled
        self._lock = threading.Lock()  # keeps the order of the responses
        self._sent = False
        self._closed = False
        self._owes = True
        unanswered.add(id(self))

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response, or without one only the flag TRITONSERVER_RESPONSE_COMPLETE_FINAL, the end.

        Waits while the client has many unread responses.

        Raises TritonModelException after the last response, and if a model that is not decoupled sends more
        or less than one response.
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
        """Record that the request has its last response, or is rescheduled for a later execute."""
        self._owes = False
        unanswered.remove(id(self))

    def __del__(self) -> None:
        if self._owes:
            unanswered.remove(id(self))
            self._host.abandon(self._key)

    def is_cancelled(self) -> bool:
        """Return whether the request is cancelled."""
        return self._host.is_cancelled(self._key)

    def _check(self, response: InferenceResponse | None, flags: int) -> None:
        """Raises TritonModelException for an invalid call; checks in Triton's order."""
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
        """Raises TritonModelException unless a model that is not decoupled sends exactly one response."""
        if response is not None and self._sent:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response."
            )
        if response is None and not self._sent:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before "
                "sending a response."
            )
