"""Example: a small model and its true answers.

author ─► [Example] ─► write_model ─► a model repository ─► Served.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from google.protobuf import text_format

from core import dtypes
from core.backend import Backend
from core.config import ModelConfig, parse_text
from core.config.messages import ModelInstanceGroup
from core.tensor import Tensor

Arrays = Mapping[str, np.ndarray]

MODEL = "example"
BATCH = 8  # max_batch_size of a configuration that is written from the arrays


@dataclass(frozen=True)
class Example:
    """A small model and what it answers.

    backend     that serves it; need not be installed
    files       folder with what the version's folder is to hold (model.onnx, model.py, …); it is
                copied, never written to
    inputs      name → array. For a model that batches, the first dimension is the rows: two to eight
    expected    name → array, the answer; for a stream, a list of the answers in their order
    config      text of config.pbtxt; without it, it is written from the arrays. The kit sets name,
                instance_group and dynamic_batching itself
    failing     inputs that fit the configuration and make the model raise; None if there are none
    tolerance   relative, of floating point answers
    """

    backend: Backend
    files: Path
    inputs: Arrays
    expected: Arrays | Sequence[Arrays]
    config: str | None = None
    failing: Arrays | None = None
    tolerance: float = 1e-5

    @property
    def answer(self) -> Arrays:
        """The one answer of a model that does not stream."""
        assert isinstance(self.expected, Mapping), "this example streams: it has several answers"
        return self.expected

    @property
    def rows(self) -> int:
        """Rows of the inputs, for a model that batches."""
        return int(next(iter(self.inputs.values())).shape[0])

    def row(self, start: int, stop: int) -> tuple[Arrays, Arrays]:
        """Inputs and answer of the rows from `start` to before `stop`."""
        return (
            {name: array[start:stop] for name, array in self.inputs.items()},
            {name: array[start:stop] for name, array in self.answer.items()},
        )

    def check(self, found: Arrays, expected: Arrays | None = None) -> None:
        """Compare an answer with the true one: names, shapes, datatypes, values."""
        wanted = self.answer if expected is None else expected
        assert list(found) == list(wanted), "the outputs are not those of the configuration"
        for name, array in wanted.items():
            assert_same(name, found[name], np.asarray(array), self.tolerance)


def assert_same(name: str, found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """One output against its true value; text and integers exactly."""
    assert found.shape == expected.shape, f"output '{name}': {found.shape} for {expected.shape}"
    assert dtypes.of_numpy(found.dtype) is dtypes.of_numpy(expected.dtype), (
        f"output '{name}' is {found.dtype}, the example says {expected.dtype}"
    )
    if found.dtype.kind == "f":
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance, err_msg=f"output '{name}'"
        )
    else:
        as_bytes = expected.astype(object) if expected.dtype.kind == "S" else expected
        np.testing.assert_array_equal(found, as_bytes, err_msg=f"output '{name}'")


def write_model(
    example: Example, repository: Path, supports: Iterable[str], *, instances: int = 1
) -> Path:
    """A model folder with one version and a config.pbtxt; returns the folder."""
    folder = repository / MODEL
    shutil.copytree(example.files, folder / "1", ignore=shutil.ignore_patterns("__pycache__"))
    config = _config(example, "batching" in supports)
    if "cpu" in supports:
        del config.instance_group[:]
        config.instance_group.add(kind=ModelInstanceGroup.KIND_CPU, count=instances)
    text = text_format.MessageToString(config)
    (folder / "config.pbtxt").write_text(text, encoding="utf-8")
    return folder


def _config(example: Example, batches: bool) -> ModelConfig:
    if example.config is None:
        config = _config_of_arrays(example, batches)
    else:
        config = parse_text(example.config, "config of the example")
    config.name = MODEL
    config.backend = config.backend or example.backend.name or "under_test"
    if batches and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()
    return config


def _config_of_arrays(example: Example, batches: bool) -> ModelConfig:
    """What the arrays say: names, datatypes and shapes."""
    config = ModelConfig(max_batch_size=BATCH if batches else 0)
    expected = example.expected
    streams = not isinstance(expected, Mapping)
    first = expected[0] if not isinstance(expected, Mapping) else expected
    if streams:
        config.model_transaction_policy.decoupled = True
    for entries, arrays in ((config.input, example.inputs), (config.output, first)):
        for name, array in arrays.items():
            shape = array.shape[1:] if batches else array.shape
            dtype = Tensor.of(name, array).dtype
            entries.add(name=name, data_type=dtype.number, dims=shape)
    return config
