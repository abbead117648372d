"""Errors of Python models that clients see, in Triton's words."""

from __future__ import annotations

from core.errors import CoreError, internal, unsupported


def unhealthy(instance: str) -> CoreError:
    """The child of requests in flight, or of a load, has died."""
    return internal(f"Stub process '{instance}' is not healthy.")


def failed(instance: str, text: str) -> CoreError:
    """execute has raised, or returned what is no answer."""
    return internal(f"Failed to process the request(s) for model '{instance}', message: {text}")


def not_rescheduled(instance: str) -> CoreError:
    """A request was released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE."""
    return unsupported(
        f"'{instance}' asks for its request to be scheduled again, which only a model with "
        "iterative_sequence can"
    )
