"""Item and Answer: one request of a run, and what the model has answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.request import Parameter
from core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Request:
    """Inputs and fields of a request."""

    inputs: dict[str, Tensor]
    id: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One request, not read yet.

    source   names it for people: file and line, row or name
    bytes    of its part of the input files, for the progress
    read     returns the request; raises CoreError for input that does not fit the model
    """

    source: str
    bytes: int
    read: Callable[[], Request]


Responses = list[list[Tensor]]
"""The outputs of each response: one response, but for decoupled models."""
