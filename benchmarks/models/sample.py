"""Sample: one request to a model and its right response; and the requests of a scenario, in turn.

scenarios ─► [Sample] ─► exchange (the bytes on the wire) and the check of every server's response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Arrays = Mapping[str, "np.ndarray[Any, Any]"]


MIXED_REQUESTS = 256  # number of different requests in a scenario with mixed requests
MIXED_ROWS = 8  # maximum rows of such a request


@dataclass(frozen=True)
class Answer:
    """The tensors and the id of a response."""

    outputs: Arrays
    id: str = ""


@dataclass(frozen=True)
class Sample:
    """One request and its right response.

    inputs, outputs   name → array, all FP32, in the order of the configuration
    id                id of the request, which the response repeats; "" for none
    """

    inputs: Arrays
    outputs: Arrays
    id: str = ""

    def difference(self, found: Answer) -> str:
        """Return the difference of a response from the right one; "" for none."""
        if found.id != self.id:
            return f"id '{found.id}', expected '{self.id}'"
        if list(found.outputs) != list(self.outputs):
            return f"outputs {list(found.outputs)}, expected {list(self.outputs)}"
        for name, expected in self.outputs.items():
            array = found.outputs[name]
            if array.dtype != expected.dtype or array.shape != expected.shape:
                return (
                    f"output '{name}' is {array.dtype}{list(array.shape)}, "
                    f"expected {expected.dtype}{list(expected.shape)}"
                )
            if not np.allclose(array, expected, rtol=1e-4, atol=1e-5):
                return f"output '{name}' has other values than expected"
        return ""


def numbers(*shape: int, seed: int = 7) -> np.ndarray[Any, Any]:
    """Return random FP32 numbers, the same in every run."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def identity(*shape: int, seed: int = 7) -> Sample:
    array = numbers(*shape, seed=seed)
    return Sample({"INPUT0": array}, {"OUTPUT0": array})


def add_sub(*shape: int, seed: int = 7) -> Sample:
    left, right = numbers(2, *shape, seed=seed)
    return Sample(
        {"INPUT0": left, "INPUT1": right}, {"OUTPUT0": left + right, "OUTPUT1": left - right}
    )


def mlp() -> Sample:
    """Return a request of one row; numpy computes the right response."""
    from benchmarks.models.mlp import forward

    array = numbers(1, 64)
    return Sample({"INPUT0": array}, {"OUTPUT0": forward(array)})


def mixed(make: Callable[..., Sample], rows: int = 0) -> list[Sample]:
    """Return MIXED_REQUESTS requests, each with an id and numbers of its own.

    make   the sample of a shape and a seed
    rows   of each request; 0: 1 to MIXED_ROWS rows in turn
    """
    return [
        replace(make(rows or 1 + i % MIXED_ROWS, 16, seed=i), id=f"request-{i + 1}")
        for i in range(MIXED_REQUESTS)
    ]


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
    "add_sub_4_rows": lambda: add_sub(4, 16),
    "add_sub_5_rows": lambda: add_sub(5, 16),
    "identity_4_rows": lambda: identity(4, 16),
    "identity_5_rows": lambda: identity(5, 16),
    "mlp": mlp,
}

MIXED: Mapping[str, Callable[[], list[Sample]]] = {
    "identity_mixed": lambda: mixed(identity),
    "add_sub_mixed": lambda: mixed(add_sub),
    "identity_4_rows_mixed": lambda: mixed(identity, 4),
    "identity_5_rows_mixed": lambda: mixed(identity, 5),
    "add_sub_4_rows_mixed": lambda: mixed(add_sub, 4),
    "add_sub_5_rows_mixed": lambda: mixed(add_sub, 5),
}


def samples(name: str) -> Sequence[Sample]:
    """Return the requests of a scenario, which are sent in turn; nearly all scenarios have one."""
    return MIXED[name]() if name in MIXED else [SAMPLES[name]()]
