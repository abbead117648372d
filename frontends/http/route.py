"""Route: one row of a router's table."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from core.control import OPERATIONS
from core.server import InferenceServer
from frontends.http.message import HttpRequest, HttpResponse

Service = Callable[[InferenceServer, HttpRequest], Awaitable[HttpResponse]]


class Route(NamedTuple):
    """One row of a router's table: the service for requests with these methods and paths."""

    methods: frozenset[str]
    path: re.Pattern[str]
    category: str  # of --http-restricted-api, and of the roles that callers need
    service: Service
    operation: str = ""  # name of its control operation
    looks: bool = (
        False  # whether it changes nothing, with any method; else only GET changes nothing
    )
    brings_files: bool = False  # whether its body may be as large as one for inference
    is_generic: bool = False  # whether it is derived from its operation, not of the protocol
    is_open: bool = False  # whether everyone may read it: a file without anything of this server

    @property
    def takes_body(self) -> bool:
        return "POST" in self.methods


def row(methods: str, path: str, subject: str, service: Service, **more: bool) -> Route:
    """Return a row of a router's table.

    methods   separated by blanks
    path      regular expression that the whole path must match; its named groups are the named parts
    subject   a category, or the name of a control operation, such as "repository.load". An operation has a
              category, and says for routes with POST whether they change anything
    more      other fields of Route
    """
    known, category, name = frozenset(methods.split()), subject, ""
    if "." in subject:
        operation = OPERATIONS[subject]
        category, name = operation.category, operation.name
        # A wrong method of a route with GET alone needs the stricter role.
        more.setdefault("looks", "POST" in known and not operation.changes)
    return Route(known, re.compile(path), category, service, name, **more)
