"""The v2 protocol: parameters, bounds and reserved names of a request, and the texts of their errors.

    HTTP, gRPC, a call in the process, a call of a model ─► [v2] ─► InferenceRequest

A protocol's parser checks the type of a value and has its own error text for it; this module gives parameters
their meaning. The compiled parsers (infer_request.hpp of HTTP, infer_request.pyx of gRPC) follow the same
rules.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from core.errors import CoreError, invalid
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest

# A request of a few megabytes can have a million entries, and each would become a Python object.
MOST_ENTRIES = 10_000  # inputs, outputs and parameters, each
MOST_DIMENSIONS = 100

LARGEST_UNSIGNED = 2**64 - 1  # of a sequence's id, a priority and a timeout
OWN_PREFIX = "triton_"  # of names that clients may not give to parameters
EMPTY_FINAL = "triton_enable_empty_final_response"

# parameter of a request → its type; "id" is a str or a number, "number" is from 0 to LARGEST_UNSIGNED
PARAMETERS = {
    "sequence_id": "id",
    "sequence_start": "bool",
    "sequence_end": "bool",
    "priority": "number",
    "timeout": "number",
}

# Parameters with a defined meaning: forward_header refuses headers of these names.
RESERVED = frozenset((*PARAMETERS, "headers", "binary_data_output"))


def set_parameter(request: InferenceRequest, name: str, value: Any) -> None:
    """Write the value of one of PARAMETERS into a request. The caller has checked its type.

    A false sequence_start or sequence_end changes nothing: it does not clear a flag that is set.
    """
    if name == "sequence_id":
        request.correlation_id = value
    elif name == "sequence_start":
        request.flags |= SEQUENCE_START if value else 0
    elif name == "sequence_end":
        request.flags |= SEQUENCE_END if value else 0
    elif name == "priority":
        request.priority = value
    else:
        request.timeout_us = value


def forward_header(request: InferenceRequest, name: str, value: str) -> None:
    """Write a header of a client into `request.parameters`. Raises CoreError(INVALID) for a reserved name.

    Header names ignore case, so a reserved name does too.
    """
    if name.lower() in RESERVED or name.lower().startswith(OWN_PREFIX):
        raise invalid(f"Header '{name}' is reserved for Triton usage and cannot be forwarded.")
    request.parameters[name] = value


def reserved_parameter(allowed: str = "") -> CoreError:
    """Return the error for a parameter whose name begins with OWN_PREFIX.

    allowed   the only such name that the protocol allows; "" for none
    """
    end = " and should not be specified."
    if allowed:
        end = f". Only the following keys starting with '{OWN_PREFIX}' are allowed: {allowed}"
    return invalid(
        f"parameter keys starting with '{OWN_PREFIX}' are reserved for Triton usage{end}"
    )


def labelled(id: str, text: str) -> CoreError:
    """Return CoreError(INVALID) with `text` after the request's id, which is "" if the client gave none."""
    return invalid(f"[request id: {id or '<id_unknown>'}] {text}")


def too_many_dimensions(name: str, shape: Sized) -> str:
    """Return the text for an input with more than MOST_DIMENSIONS."""
    return f"input '{name}' has a shape of {len(shape)} dimensions; {MOST_DIMENSIONS} are the most"


def check_entries(what: str, entries: Sized) -> None:
    """Raise CoreError(INVALID) for more than MOST_ENTRIES inputs, outputs or parameters."""
    if len(entries) > MOST_ENTRIES:
        raise invalid(f"the request has {len(entries)} {what}; {MOST_ENTRIES} are the most")
