"""Parameters on the wire: a name and one of five kinds of value."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import internal, invalid
from core.request import Parameter
from frontends.grpc.protocol.messages import InferParameter, ModelRepositoryParameter

Parameters = Mapping[str, InferParameter]

UINT64 = 2**64  # modulus: negative values of unsigned parameters wrap around, as in Triton


def kind(parameter: InferParameter | ModelRepositoryParameter) -> str | None:
    """Return the name of the field that is set: "bool_param", "int64_param", …; None for none."""
    which: str | None = parameter.WhichOneof("parameter_choice")
    return which


def boolean(name: str, parameter: InferParameter | ModelRepositoryParameter) -> bool:
    """Return the value of a bool parameter. Raises CoreError(INVALID) for another kind."""
    if kind(parameter) != "bool_param":
        raise invalid(f"invalid value type for '{name}' parameter, expected bool_param.")
    return parameter.bool_param


def custom(name: str, parameter: InferParameter) -> Parameter:
    """Return the value of a parameter for the model, which is no parameter of the protocol.

    Raises CoreError(INVALID) for a uint64_param, and for a parameter without a value.
    """
    which = kind(parameter)
    if which is None or which == "uint64_param":
        raise invalid(
            f"invalid value type for '{name}' parameter, expected int64_param, bool_param, or "
            "string_param."
        )
    value: Parameter = getattr(parameter, which)
    return value


def write(target: InferParameter, name: str, value: Parameter) -> None:
    """Set `target` to the value of the response parameter `name`, which a model has returned.

    Raises CoreError(INTERNAL) if it is no bool, int64, double or text.
    """
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
