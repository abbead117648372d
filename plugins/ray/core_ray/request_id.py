"""The id under which Ray Serve logs and returns the current request."""

from __future__ import annotations

from ray.serve.context import _get_serve_request_context


def request_id() -> str:
    """Return the id of the request that this task serves; "" outside of one."""
    return str(_get_serve_request_context().request_id)
