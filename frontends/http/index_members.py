"""IndexMembers: members that plugins add to the entries of the repository index over HTTP.

core_server_starting ─► IndexMembers.of(server).add("memory", find) ─► POST /v2/repository/index.  The message
of gRPC has no field for them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from core.server import InferenceServer

logger = logging.getLogger("core")

Find = Callable[[], Awaitable[Mapping[tuple[str, str, str], Any]]]


class IndexMembers:
    """The added members of one server. Event loop only."""

    def __init__(self, server: InferenceServer):
        self._added: dict[str, Find] = {}

    @staticmethod
    def of(server: InferenceServer) -> IndexMembers:
        """Return the members of a server: the same object at every call."""
        return server.shared(IndexMembers)

    def add(self, name: str, find: Find) -> None:
        """Add a member to the entries of READY versions. A second call with the same name replaces it.

        name   other than those of the protocol: name, version, state, reason, namespace
        find   returns (namespace or "", model, version) → value, what JSON can hold, for the versions that
               have one. Awaited for each request for the index; its exceptions are logged
        """
        self._added[name] = find

    async def complete(self, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return copies of the index's entries, with the added members."""
        completed = [dict(each) for each in entries]
        for name, find in self._added.items():
            try:
                found = await find()
            except Exception:  # the index serves those who look for a problem
                logger.exception("the index has no member '%s' now", name)
                continue
            for entry in completed:
                key = (entry.get("namespace", ""), entry["name"], entry.get("version", ""))
                if entry.get("state") == "READY" and key in found:
                    entry[name] = found[key]
        return completed

    async def close(self) -> None:
        """Forget the members, because the server has stopped."""
        self._added.clear()
