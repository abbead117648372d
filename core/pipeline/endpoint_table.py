"""EndpointTable: the endpoints of all model versions that serve.

frontend ─► [EndpointTable] ─► ModelEndpoint ─► …  Written when versions load or unload, read for requests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from core.pipeline.endpoint import ModelEndpoint
from core.request import NEWEST


class EndpointTable:
    """Table from model name and version number to ModelEndpoint.

    Not thread-safe: call from the event loop only.

    missing   called with name and version if the table has no entry: raises CoreError that says why, or
              returns an endpoint
    front     (name, endpoints by number) → endpoint of NEWEST, None for the highest; a plugin may set it
    """

    def __init__(self, missing: Callable[[str, int], ModelEndpoint]):
        self._missing = missing
        self.front: Callable[[str, dict[int, ModelEndpoint]], ModelEndpoint | None] = (
            lambda name, endpoints: None
        )
        self._newest: dict[str, ModelEndpoint] = {}
        self._numbered: dict[tuple[str, int], ModelEndpoint] = {}
        self._numbers: dict[str, tuple[int, ...]] = {}  # the versions of each model in _numbered

    def find(self, name: str, version: int) -> ModelEndpoint:
        """Return the endpoint of a version; `put` chose that of NEWEST. Without one, call `missing`."""
        newest = version == NEWEST
        endpoint = self._newest.get(name) if newest else self._numbered.get((name, version))
        return endpoint if endpoint is not None else self._missing(name, version)

    def put(self, name: str, endpoints: dict[int, ModelEndpoint]) -> None:
        """Replace all versions of a model; {} removes it. NEWEST becomes that of `front`, or the highest."""
        name = sys.intern(name)  # as in a Signature: `find` compares no text of the same str
        for number in self._numbers.pop(name, ()):
            del self._numbered[name, number]
        self._newest.pop(name, None)
        for number, endpoint in endpoints.items():
            self._numbered[name, number] = endpoint
        if endpoints:
            self._numbers[name] = tuple(endpoints)
            self._newest[name] = self.front(name, endpoints) or endpoints[max(endpoints)]

    def renew(self, name: str) -> None:
        """Ask `front` again, with the versions of a model that serve."""
        self.put(name, {each: self._numbered[name, each] for each in self._numbers.get(name, ())})
