"""Sample: one request to a model and the answer that is right.

scenarios ─► [Sample] ─► exchange (the bytes on the wire) and the check of every server's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Mapping[str, "np.ndarray[Any, Any]"]


@dataclass(frozen=True)
class Sample:
    """inputs and outputs: name → array, all FP32, in the order of the configuration."""

    inputs: Arrays
    outputs: Arrays

    def difference(self, found: Arrays) -> str:
        """What is wrong with an answer, "" if it is right."""
        if list(found) != list(self.outputs):
            return f"outputs {list(found)}, expected {list(self.outputs)}"
        for name, expected in self.outputs.items():
            array = found[name]
            if array.dtype != expected.dtype or array.shape != expected.shape:
                return (
                    f"output '{name}' is {array.dtype}{list(array.shape)}, "
                    f"expected {expected.dtype}{list(expected.shape)}"
                )
            if not np.allclose(array, expected, rtol=1e-4, atol=1e-5):
                return f"output '{name}' has other values than expected"
        return ""


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """The same FP32 numbers in every run."""
    return np.random.default_rng(7).standard_normal(shape, np.float32)


def identity(*shape: int) -> Sample:
    array = numbers(*shape)
    return Sample({"INPUT0": array}, {"OUTPUT0": array})


def add_sub(*shape: int) -> Sample:
    left, right = numbers(2, *shape)
    return Sample(
        {"INPUT0": left, "INPUT1": right}, {"OUTPUT0": left + right, "OUTPUT1": left - right}
    )


def mlp() -> Sample:
    """Of one row; the right answer is numpy's."""
    from benchmarks.models.mlp import forward

    array = numbers(1, 64)
    return Sample({"INPUT0": array}, {"OUTPUT0": forward(array)})


SAMPLES: Mapping[str, Callable[[], Sample]] = {
    "identity": lambda: identity(16),
    "identity_batched": lambda: identity(1, 16),
    "identity_64": lambda: identity(1, 64),
    "identity_1mb": lambda: identity(1 << 18),
    "identity_16mb": lambda: identity(1 << 22),
    "three_steps": lambda: identity(16),
    "add_sub": lambda: add_sub(16),
    "add_sub_batched": lambda: add_sub(1, 16),
    "add_sub_inline": lambda: add_sub(16),
    "add_sub_inline_batched": lambda: add_sub(1, 16),
    "mlp": mlp,
}
