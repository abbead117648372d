"""Target: what a request asks for, over HTTP or gRPC."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Purpose(enum.Enum):
    """How the router answers a request."""

    MODEL = "a server with the model answers"
    INFERENCE = "as MODEL; the request may be repeated on another server if the model has no state"
    NAMED_IN_BODY = "as INFERENCE; the JSON of the body, or a field of its form, names the model"
    ANY = "any server answers"
    OPEN = "as ANY; the client may send on and on, so the request is not repeated"
    EVERY = "all servers answer, and their responses are combined"
    SETTINGS = "as EVERY if the message changes settings, else as ANY"
    INDEX = "the indexes of all servers become one"
    LIST = "the lists of models of all servers become one, in OpenAI's form"
    STATISTICS = "the statistics of all servers become one"
    LIVE = "the router is live"
    READY = "the router is ready if a server is"


@dataclass(frozen=True)
class Target:
    """What a request asks for.

    model     name of the model; "" if the path has none
    version   as in the path, "" for none
    """

    purpose: Purpose
    model: str = ""
    version: str = ""
