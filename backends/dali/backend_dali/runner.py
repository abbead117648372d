"""Run a pipeline: samples ─► DALI ─► arrays.

reading, framework ─► [runner] ─► instance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from backend_dali.framework import import_dali
from backend_dali.reading import ReadModel, unreadable

_OPERATOR = re.compile(r"operator `(?P<operator>[^`]+)`.*?encountered:\s*(?P<reason>.*)", re.DOTALL)

Array = np.ndarray[Any, Any]
Samples = Array | Sequence[Array]
"""Samples of a batch: one array with a row for each, or a list of arrays of different shapes."""


class Runner:
    """The pipeline of an instance. Not thread-safe.

    An error in an operator ends a pipeline: the next run makes a new one.
    """

    def __init__(
        self, read: ReadModel, model: str, *, rows: int, threads: int, device: int | None
    ) -> None:
        """rows     the largest batch
        threads  of the pipeline; 0 for as many as it says
        device   number of the GPU; None for none

        Raises CoreError: INVALID if there is no DALI, INTERNAL if it cannot make the pipeline.
        """
        self._read, self._model = read, model
        self._dali = import_dali(model)
        self._options: dict[str, Any] = {"batch_size": rows, "device_id": device}
        if threads:
            self._options["num_threads"] = threads
        self._pipeline: Any = self._make()

    def run(self, samples: Mapping[str, Samples]) -> list[Samples]:
        """Return the samples of each output, in new memory. The GIL is released meanwhile.

        Raises the errors of DALI.
        """
        pipeline = self._pipeline or self._make()
        self._pipeline = None
        for name, each in samples.items():
            pipeline.feed_input(name, each)
        found = [_arrays(each) for each in pipeline.run()]
        self._pipeline = pipeline
        return found

    def close(self) -> None:
        """Drop the pipeline, and its threads."""
        self._pipeline = None

    def _make(self) -> Any:
        """Return a pipeline that runs one batch at a time: it waits for no batch to come."""
        try:
            return self._dali.Pipeline.deserialize(
                self._read.pipeline,
                prefetch_queue_depth=1,
                exec_pipelined=False,
                exec_async=False,
                **self._options,
            )
        except Exception as error:
            raise unreadable(
                self._read.path,
                self._model,
                f"DALI {self._dali.__version__} says: {text_of(error)}",
            ) from error


def text_of(error: BaseException) -> str:
    """Return the text of an error of DALI in one line: the operator and the reason, without traces."""
    text = str(error)
    found = _OPERATOR.search(text)
    if found:
        text = f"{found['operator']}: {found['reason']}"
    text = re.split(r"Stacktrace|C\+\+ context|Current pipeline object", text)[0]
    return " ".join(text.split())[:1000] or type(error).__name__


def _arrays(found: Any) -> Samples:
    """Return copies of the samples of an output: the pipeline uses its memory again."""
    if "GPU" in type(found).__name__:
        found = found.as_cpu()
    if found.is_dense_tensor():
        array: Array = found.as_array()  # a copy
        return array
    return [np.array(found.at(place)) for place in range(len(found))]
