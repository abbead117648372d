"""Shared code of identity, repeat and square: checks of configurations, and the base of their instances."""

from __future__ import annotations

from collections.abc import Sequence

import core
from backend_testing.native import Identity, Repeat, Square
from core import dtypes
from core.config import ModelConfig

Tensor = tuple[str, str, Sequence[int]]  # name, datatype, dims; [-1] allows any size


def require(config: ModelConfig, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Raise CoreError(INVALID) unless the model has these inputs and outputs, in any order."""
    for what, found, wanted in (
        ("input", config.input, inputs),
        ("output", config.output, outputs),
    ):
        given = {
            each.name: (dtypes.BY_NUMBER[each.data_type].name, list(each.dims)) for each in found
        }
        expected = {name: (datatype, list(dims)) for name, datatype, dims in wanted}
        if given.keys() != expected.keys():
            raise invalid(
                config, f"has {what}s {sorted(given)}, the backend has {sorted(expected)}"
            )
        for name, (datatype, dims) in expected.items():
            has, size = given[name]
            if has != datatype or len(size) != len(dims) or (dims != [-1] and size != dims):
                raise invalid(
                    config, f"{what} '{name}' is {has}{size}, the backend has {datatype}{dims}"
                )


def invalid(config: ModelConfig, text: str) -> core.CoreError:
    """Return a CoreError(INVALID) with the model's name before `text`."""
    return core.CoreError(core.Kind.INVALID, f"model '{config.name}' {text}")


def whole_number(model: core.Model, name: str) -> int:
    """Return a parameter of the model as int; 0 if it is missing, or has other characters than digits."""
    text = model.parameter(name)
    return int(text) if text.isascii() and text.isdigit() else 0


class NativeInstance(core.ModelInstance):
    """An instance that core executes in native code. A subclass calls `run` in its `open`."""

    def run(self, instance: Identity | Repeat | Square) -> None:
        self._instance = instance
        self.native = instance.capsule()

    def close(self) -> None:
        self._instance.close()
