"""Parameters on the wire: a name and one of five kinds of value."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import internal, invalid
from core.request import Parameter
from frontends.grpc.protocol.messages import InferParameter

Parameters = Mapping[str, InferParameter]

UINT64 = 2**64  # signed values where Triton has unsigned ones wrap around, as its own do


def kind(parameter: InferParameter) -> str | None:
    """Which of the fields is set: "bool_param", "int64_param", …; None for none."""
    which: str | None = parameter.WhichOneof("parameter_choice")
    return which


def boolean(name: str, parameter: InferParameter) -> bool:
    """The value of a parameter that must be a bool. Raises CoreError(INVALID) for another kind."""
    if kind(parameter) != "bool_param":
        raise invalid(f"invalid value type for '{name}' parameter, expected bool_param.")
    return parameter.bool_param


def custom(name: str, parameter: InferParameter) -> Parameter:
    """A value that only the model understands. Raises CoreError(INVALID) for uint64 and for none."""
    which = kind(parameter)
    if which is None or which == "uint64_param":
        raise invalid(
            f"invalid value type for '{name}' parameter, expected int64_param, bool_param, or "
            "string_param."
        )
    value: Parameter = getattr(parameter, which)
    return value


def write(target: InferParameter, name: str, value: Parameter) -> None:
    """Set `target` to a value that a response carries. Raises CoreError(INTERNAL) if it cannot."""
    try:
        if isinstance(value, bool):
            target.bool_param = value
        elif isinstance(value, int):
            target.int64_param = value
        elif isinstance(value, float):
            target.double_param = value
        else:
            target.string_param = value
    except (TypeError, ValueError):
        raise internal(
            f"response parameter '{name}' is {value!r}, which is no bool, int64, double or string"
        ) from None
