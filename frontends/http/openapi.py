"""The description of the HTTP routes, as OpenAPI 3.1: openapi.json beside this file.

Tests compare it with the router's table. A new route needs a row there and an entry in openapi.json.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import orjson

import core


@cache
def description() -> bytes:
    """Return the document as JSON, with the version of this server."""
    document = orjson.loads(resources.files(__package__).joinpath("openapi.json").read_bytes())
    document["info"]["version"] = core.__version__
    return orjson.dumps(document)
