"""Errors of vLLM → CoreError."""

from __future__ import annotations

from core_generate import StructureRefused

from core.errors import CoreError, Kind, cancelled, internal, invalid, unavailable

# Begins of texts with which vLLM refuses a schema, regular expression or grammar.
_STRUCTURES = ("Grammar error:", "Invalid grammar specification:")


def failure(error: BaseException) -> CoreError:
    """Return the error of a request for an exception that vLLM raised."""
    if isinstance(error, CoreError):
        return error
    from vllm import exceptions
    from vllm.v1.engine.exceptions import EngineDeadError

    if isinstance(error, EngineDeadError):
        return unavailable("vLLM's engine has died; load the model again, its log has the reason")
    if isinstance(error, (exceptions.VLLMClientError, ValueError, TypeError)):
        parameter = getattr(error, "parameter", None)
        field = f"'{parameter}': " if parameter else ""
        text = str(error.args[0] if error.args else error)
        refused = StructureRefused if text.startswith(_STRUCTURES) else invalid
        return refused(f"vLLM refuses the request: {field}{text}")
    if isinstance(error, exceptions.GracefulHTTPError):
        return unavailable(f"vLLM: {error}")
    cause = error.__cause__ or error
    return internal(f"vLLM: {type(cause).__name__}: {cause}")


def finished(reason: str) -> str | CoreError:
    """Return `finish` of the last event for vLLM's reason, or the error that ends the generation."""
    if reason in ("stop", "length"):
        return reason
    if reason == "repetition":
        return "stop"
    if reason == "abort":
        return cancelled()
    return CoreError(Kind.INTERNAL, f"vLLM has ended the generation: {reason}")
