"""Check what a model's execute returned."""

from __future__ import annotations

from typing import Any

from backend_python.api.request import TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, InferenceRequest
from backend_python.api.response import InferenceResponse


class Refused(Exception):
    """execute returned something invalid. Clients get the text without the name of the type."""


def checked(requests: list[InferenceRequest], returned: Any, decoupled: bool) -> list[Any]:
    """Return what execute returned, as a list. Raises Refused if it is invalid."""
    if type(returned) is not list or len(returned) != len(requests):
        return _other(requests, returned, decoupled)
    responses: list[Any] = returned
    for i in range(len(responses)):
        response = responses[i]
        request = requests[i]
        if request._sender is not None and (
            response is not None
            or request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
        ):
            request._sender.settle()
        if response is None:
            continue
        if request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
            raise Refused(
                "Expected a None object in the execute function return list for reschduled "
                f"request, found type '{type(response)}'."
            )
        if not isinstance(response, InferenceResponse):
            raise Refused(
                "Expected an 'InferenceResponse' object in the execute function return list, "
                f"found type '{type(response)}'."
            )
    return responses


def _other(requests: list[InferenceRequest], returned: Any, decoupled: bool) -> list[Any]:
    """Check and convert a result that is not a plain list with one item for each request."""
    if returned is None and (decoupled or _answered_elsewhere(requests)):
        return checked(requests, [None] * len(requests), decoupled)
    if not isinstance(returned, list):
        raise Refused(f"Expected a list in the execute return, found type '{type(returned)}'.")
    if len(returned) == len(requests):
        return checked(requests, list(returned), decoupled)
    raise Refused(
        "Number of InferenceResponse objects do not match the number of InferenceRequest "
        f"objects. InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) "
        f"size is:{len(returned)}\n"
    )


def _answered_elsewhere(requests: list[InferenceRequest]) -> bool:
    """Return whether any request has a response sender, which may answer it now or later."""
    return any(request._sender is not None for request in requests)
