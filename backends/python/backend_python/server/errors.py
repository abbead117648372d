"""Errors of Python models that clients see, in Triton's words."""

from __future__ import annotations

from core.errors import CoreError, internal


def unhealthy(instance: str) -> CoreError:
    """The child of requests in flight, or of a load, has died."""
    return internal(f"Stub process '{instance}' is not healthy.")


def failed(instance: str, text: str) -> CoreError:
    """execute has raised, or returned what is no answer."""
    return internal(f"Failed to process the request(s) for model '{instance}', message: {text}")
