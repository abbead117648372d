"""Settings for TVM: the parameters in config.pbtxt."""

from __future__ import annotations

import os
from dataclasses import dataclass

from core.completion import MAX_BATCH_SIZE
from core.config import ModelConfig
from core.errors import CoreError, invalid

PARAMETERS = ("function", "inputs", "outputs", "threads", "allocator")
KEYS = (MAX_BATCH_SIZE,)
ALLOCATORS = ("pooled", "naive")

_MOST_THREADS = max(1024, os.cpu_count() or 0)


@dataclass(frozen=True)
class Settings:
    """The settings of one model.

    function    that answers requests; "" for `main`, or the only one
    inputs      names of the inputs in the order of the function; () for those of its parameters
    outputs     names of the results in order; () for output0, output1, …
    threads     of one execution, for code with parallel loops; 0 for TVM's number
    allocator   pooled: keep memory for the next run; naive: give it back after each
    """

    function: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    threads: int = 0
    allocator: str = "pooled"


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    values = {name: entry.string_value for name, entry in config.parameters.items()}
    allocator = values.get("allocator") or Settings.allocator
    if allocator not in ALLOCATORS:
        raise _wrong(config.name, "allocator", " or ".join(ALLOCATORS), allocator)
    return Settings(
        function=values.get("function", ""),
        inputs=_names(config.name, "inputs", values.get("inputs", "")),
        outputs=_names(config.name, "outputs", values.get("outputs", "")),
        threads=_threads(config.name, values.get("threads", "")),
        allocator=allocator,
    )


def _names(model: str, parameter: str, text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(",")) if text else ()
    if "" in names or len(set(names)) < len(names):
        raise _wrong(model, parameter, "different names with commas between them", text)
    return names


def _threads(model: str, text: str) -> int:
    if not text:
        return 0
    if not (
        text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= _MOST_THREADS
    ):
        raise _wrong(model, "threads", f"a whole number from 1 to {_MOST_THREADS}", text)
    return int(text)


def _wrong(model: str, name: str, expected: str, found: str) -> CoreError:
    return invalid(
        f"model '{model}': expected the parameter '{name}' to be {expected}, got {found}; change it in "
        "config.pbtxt"
    )
