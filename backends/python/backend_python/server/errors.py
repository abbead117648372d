"""Errors of Python models that clients see. Errors that Triton has too use Triton's messages."""

from __future__ import annotations

from backend_python.api.errors import ErrorCode
from core.config import Signature
from core.errors import CoreError, Kind, internal

_CODES = {code.value: code for code in ErrorCode}


def code_of(error: CoreError) -> ErrorCode:
    """Return the code that a model sees for an error of a model that it has called.

    DEADLINE_EXCEEDED becomes CANCELLED. Other kinds without a code in Triton, such as FORBIDDEN, become
    UNAVAILABLE.
    """
    if error.kind is Kind.DEADLINE_EXCEEDED:
        return ErrorCode.CANCELLED
    return _CODES.get(error.kind.value, ErrorCode.UNAVAILABLE)


def unhealthy(instance: str) -> CoreError:
    """Return the error of a request or a load that failed because its child has died."""
    return internal(f"Stub process '{instance}' is not healthy.")


def failed(instance: str, text: str) -> CoreError:
    """Return the error of a batch whose execute raised or returned an invalid value."""
    return internal(f"Failed to process the request(s) for model '{instance}', message: {text}")


def abandoned(signature: Signature) -> CoreError:
    """Return the error of a request whose response sender the model dropped before the last answer."""
    if signature.decoupled:
        missing, call = "the final flag", "response_sender.send("
    else:
        missing, call = "a response", "response_sender.send(response, "
    return internal(
        f"model '{signature.name}' dropped the response sender of a request without {missing}; "
        f"call {call}flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)"
    )
