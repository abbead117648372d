"""`parameters` of an inference request: those of the protocol, and custom ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.errors import CoreError, invalid
from core.request import InferenceRequest, Parameter
from frontends.shared.v2 import (
    LARGEST_UNSIGNED,
    OWN_PREFIX,
    PARAMETERS,
    check_entries,
    reserved_parameter,
    set_parameter,
)

_SIGNED = range(-(2**63), 2**63)


def read_parameters(parameters: Any, request: InferenceRequest) -> bool:
    """Write the parameters into the request; return binary_data_output, False without it.

    That is whether outputs are binary unless they say otherwise. Raises CoreError(INVALID) for a value of the
    wrong type, a reserved name, and too many parameters.
    """
    if type(parameters) is not dict:
        raise invalid("failed to get request params.: attempt to get members for non-object")
    check_entries("parameters", parameters)
    binary_output = False
    for key, value in parameters.items():
        if (kind := PARAMETERS.get(key)) is not None:
            set_parameter(request, key, _READERS[kind](key, value))
        elif key == "binary_data_output":
            binary_output = truth(key, value)
        elif key.startswith(OWN_PREFIX):
            raise reserved_parameter()
        else:
            request.parameters[key] = custom(key, value)
    return binary_output


def custom(key: str, value: Any) -> Parameter:
    """Return the value of a custom parameter; an integer beyond 64 bits becomes a float.

    Raises CoreError(INVALID) if it is neither text, nor a number, nor a boolean.
    """
    if type(value) is int and value not in _SIGNED:
        return float(value)  # as in Triton: no integer type holds it
    if type(value) in (str, int, bool, float):
        found: Parameter = value
        return found
    raise invalid(
        f"parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
    )


def _sequence_id(key: str, value: Any) -> int | str:
    if type(value) is str:
        return value
    if type(value) is not int or not 0 <= value <= LARGEST_UNSIGNED:
        raise typed(key, "string", ", or non-unsigned-integer as unsigned-integer")
    return value


def truth(key: str, value: Any, where: str = "") -> bool:
    """Return `value` if it is a boolean. Raises CoreError(INVALID) otherwise."""
    if type(value) is not bool:
        raise typed(key, "boolean", where)
    return value


def natural(key: str, value: Any, where: str = "") -> int:
    """Return `value` if it is an integer from 0 to 2^64 - 1. Raises CoreError(INVALID) otherwise."""
    if type(value) is not int or not 0 <= value <= LARGEST_UNSIGNED:
        raise typed(key, "unsigned-integer", where)
    return value


def typed(key: str, kind: str, where: str = "") -> CoreError:
    """Return the error for a member `key` that is not of the type `kind`; the text ends with `where`."""
    return invalid(f"Unable to parse '{key}': attempt to access JSON non-{kind} as {kind}{where}")


_READERS: dict[str, Callable[[str, Any], bool | int | str]] = {
    "id": _sequence_id,
    "bool": truth,
    "number": natural,
}
