"""`parameters` of an inference request: those that the protocol knows, and the client's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.errors import CoreError, invalid
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest, Parameter
from frontends.http.codec.limits import check_entries
from frontends.shared.protocol import RESERVED

_OWN_PREFIX = "triton_"
_LARGEST_UNSIGNED = 2**64 - 1
_SIGNED = range(-(2**63), 2**63)


def read_parameters(parameters: Any, request: InferenceRequest) -> bool:
    """Write the parameters into the request; whether outputs are binary unless they say otherwise.

    Raises CoreError(INVALID) for a value of the wrong type.
    """
    if type(parameters) is not dict:
        raise invalid("failed to get request params.: attempt to get members for non-object")
    check_entries("parameters", parameters)
    binary_output = False
    for key, value in parameters.items():
        if key == "sequence_id":
            request.correlation_id = _correlation_id(value)
        elif key == "sequence_start":
            request.flags |= SEQUENCE_START if truth(key, value) else 0
        elif key == "sequence_end":
            request.flags |= SEQUENCE_END if truth(key, value) else 0
        elif key == "priority":
            request.priority = natural(key, value)
        elif key == "timeout":
            request.timeout_us = natural(key, value)
        elif key == "binary_data_output":
            binary_output = truth(key, value)
        elif key.startswith(_OWN_PREFIX):
            raise invalid(
                "parameter keys starting with 'triton_' are reserved for Triton usage and should not "
                "be specified."
            )
        else:
            request.parameters[key] = custom(key, value)
    return binary_output


def custom(key: str, value: Any) -> Parameter:
    """The value of a parameter of the client's own. Raises CoreError(INVALID) for other types."""
    if type(value) is int and value not in _SIGNED:
        return float(value)  # as Triton does: no integer type holds it
    if type(value) in (str, int, bool, float):
        found: Parameter = value
        return found
    raise invalid(
        f"parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
    )


def add_headers(headers: Iterable[tuple[str, str]], request: InferenceRequest) -> None:
    """Write forwarded headers into the request's parameters, under their names as they came.

    Raises CoreError(INVALID) for a name that parameters of the protocol have.
    """
    for name, value in headers:
        if name.lower() in RESERVED or name.lower().startswith(_OWN_PREFIX):
            raise invalid(f"Header '{name}' is reserved for Triton usage and cannot be forwarded.")
        request.parameters[name] = value


def _correlation_id(value: Any) -> int | str:
    if type(value) is str:
        return value
    if type(value) is not int or not 0 <= value <= _LARGEST_UNSIGNED:
        raise typed("sequence_id", "string", ", or non-unsigned-integer as unsigned-integer")
    return value


def truth(key: str, value: Any, where: str = "") -> bool:
    """`value` if it is a boolean. Raises CoreError(INVALID)."""
    if type(value) is not bool:
        raise typed(key, "boolean", where)
    return value


def natural(key: str, value: Any, where: str = "") -> int:
    """`value` if it is an integer from 0 to 2^64 - 1. Raises CoreError(INVALID)."""
    if type(value) is not int or not 0 <= value <= _LARGEST_UNSIGNED:
        raise typed(key, "unsigned-integer", where)
    return value


def typed(key: str, kind: str, where: str = "") -> CoreError:
    """The refusal of a member that is not of the kind that it must be."""
    return invalid(f"Unable to parse '{key}': attempt to access JSON non-{kind} as {kind}{where}")
