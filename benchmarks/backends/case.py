"""Case: a model of one backend, and how its framework runs it."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models.repository import batched, tensors
from benchmarks.models.sample import Arrays, Sample, numbers

BACKENDS = (
    "onnx",
    "pytorch",
    "openvino",
    "fil",
    "litert",
    "tensorflow",
    "jax",
    "paddle",
    "tvm",
    "dali",
)
"""Modules of this package."""


class Case(ABC):
    """FP32 rows in, FP32 rows out: inputs[n, width] → outputs[n, results].

    name      name of the model, in tables and in the repository
    backend   name of the backend in config.pbtxt
    package   required package
    inputs, outputs    names of the two tensors
    more      further lines of config.pbtxt; both sides run with one thread
    """

    name: str
    backend: str
    package: str
    width: int
    results: int
    most: int = 64
    inputs: str = "INPUT0"
    outputs: str = "OUTPUT0"
    more: str = ""

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the model's file into a version's folder."""

    @abstractmethod
    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        """Return a function that runs the model in the framework, with one thread: arrays → arrays."""

    def config(self, *, dynamic: bool) -> str:
        """Return config.pbtxt of the model, with or without dynamic batching."""
        rows = batched(self.most) if dynamic else f"max_batch_size: {self.most}\n"
        return (
            f'backend: "{self.backend}"\n'
            + rows
            + tensors("input", [self.inputs], self.width)
            + tensors("output", [self.outputs], self.results)
            + "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
            + self.more
        )

    def sample(self, run: Callable[[Arrays], Arrays], rows: int) -> Sample:
        """Return a request of so many rows, with the framework's result."""
        inputs = {self.inputs: self.rows(rows)}
        return Sample(inputs, run(inputs))

    def rows(self, count: int) -> np.ndarray[Any, Any]:
        """Return FP32[count, width], the same in every run."""
        return numbers(count, self.width)


def cases(backends: Sequence[str] = BACKENDS) -> list[Case]:
    """Return all cases of these backends. Raises ImportError for an unknown backend."""
    found: list[Case] = []
    for name in backends:
        found += importlib.import_module(f"benchmarks.backends.{name}").CASES
    return found
