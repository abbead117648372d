"""Clients: the requests of clients that have steps of an ensemble inside a model, or a group of models."""

from __future__ import annotations

from core.request import InferenceRequest


def client_of(request: InferenceRequest) -> InferenceRequest:
    """Return the request of the client, if this one is for a step of an ensemble; else the request itself."""
    while request.parent is not None:
        request = request.parent
    return request


class Clients:
    """Counts the steps of each client's request. A step must not wait for another one of its request."""

    def __init__(self) -> None:
        self._steps: dict[InferenceRequest, int] = {}

    def __contains__(self, client: InferenceRequest) -> bool:
        return client in self._steps

    def __len__(self) -> int:
        return len(self._steps)

    def enter(self, step: InferenceRequest) -> None:
        """Count a step that goes in."""
        client = client_of(step)
        self._steps[client] = self._steps.get(client, 0) + 1

    def leave(self, step: InferenceRequest) -> None:
        """Count a step that has ended."""
        client = client_of(step)
        self._steps[client] -= 1
        if not self._steps[client]:
            del self._steps[client]
