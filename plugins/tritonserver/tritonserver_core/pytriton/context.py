"""Which model the current call of a function serves: decorators need its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tritonserver_core.pytriton.exceptions import PyTritonValidationError
from tritonserver_core.pytriton.model_config import BoundConfig

_current: ContextVar[BoundConfig | None] = ContextVar("bound_config", default=None)


class _Configs:
    """function → configuration of the model that the current call serves."""

    def __getitem__(self, function: Any) -> BoundConfig:
        return current_config()


class TritonContext:
    """What `@triton_context` passes to a function."""

    model_configs = _Configs()


def current_config() -> BoundConfig:
    """Return the configuration of the current model. Raises PyTritonValidationError outside of a call."""
    if (found := _current.get()) is None:
        raise PyTritonValidationError("the function is not called by a Triton that it is bound to")
    return found


@contextmanager
def serving(config: BoundConfig) -> Iterator[None]:
    """Call functions of the block for this model."""
    token = _current.set(config)
    try:
        yield
    finally:
        _current.reset(token)
