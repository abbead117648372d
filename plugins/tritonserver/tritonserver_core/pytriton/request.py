"""Request: what a function gets for each request of a batch."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from core.request import InferenceRequest


class Request(MutableMapping[str, np.ndarray]):
    """The inputs of one request: name → array, which the function may change.

    parameters               of the request
    requested_output_names   None if the client wants all outputs
    span                     always None: the server itself traces requests
    """

    span = None

    def __init__(
        self,
        data: dict[str, np.ndarray],
        parameters: dict[str, Any] | None = None,
        requested_output_names: list[str] | None = None,
    ):
        self._arrays = data
        self.parameters = parameters
        self.requested_output_names = requested_output_names

    @property
    def data(self) -> dict[str, np.ndarray]:
        """Return all inputs as a dict."""
        return {name: self[name] for name in self._arrays}

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._arrays[name]
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            # Memory of the client, or of other requests.
            array = self._arrays[name] = array.copy()
        return array

    def read_only(self, name: str) -> np.ndarray:
        """Return an input that the caller only reads, without a copy."""
        return self._arrays[name]

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        self._arrays[name] = array

    def __delitem__(self, name: str) -> None:
        del self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @contextmanager
    def traced_span(self, span_name: str) -> Iterator[None]:
        """Do nothing: the server itself traces requests."""
        yield


def request_of(request: InferenceRequest) -> Request:
    """Return the request for a function."""
    return Request(
        {name: tensor.array for name, tensor in request.inputs.items()},
        dict(request.parameters) if request.has_parameters else None,
        [each.name for each in request.outputs] or None,
    )
