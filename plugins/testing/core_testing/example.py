"""Example: a small model and its expected answers.

author ─► [Example] ─► write_model ─► a model repository ─► Served.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from google.protobuf import text_format

from core import dtypes
from core.backend import Backend
from core.config import ModelConfig, parse_text
from core.config.messages import ModelInstanceGroup
from core.errors import CoreError
from core.tensor import Tensor

Arrays = Mapping[str, np.ndarray]

MODEL = "example"
BATCH = 8  # max_batch_size of a configuration that is derived from the arrays


@dataclass(frozen=True)
class Example:
    """A small model, one request and the expected answer.

    backend     serves the model; it need not be installed
    files       folder with the files of one model version (model.onnx, model.py, …). The kit copies it and
                does not write to it
    inputs      name → array. For a model that batches, the first dimension counts the rows: two to eight
    expected    name → array, the answer. For a stream, a list of the answers in order. For a sequence, a
                list of the answers to requests with the same inputs
    config      text of config.pbtxt. None: the kit derives it from the arrays. The kit sets name and
                instance_group, and adds dynamic_batching for a backend that supports "batching"
    failing     inputs that fit the configuration and make the model raise; None if there are none
    described   whether the files say enough for `complete`: the kit then also loads the model without inputs,
                outputs and max_batch_size in its configuration
    tolerance   relative and absolute tolerance of floating-point outputs
    """

    backend: Backend
    files: Path
    inputs: Arrays
    expected: Arrays | Sequence[Arrays]
    config: str | None = None
    failing: Arrays | None = None
    tolerance: float = 1e-5
    described: bool = True

    @property
    def answer(self) -> Arrays:
        """The only answer of a model that does not stream. Raises AssertionError for one that does."""
        assert isinstance(self.expected, Mapping), "this example streams: it has several answers"
        return self.expected

    @property
    def rows(self) -> int:
        """Number of rows of the inputs: the first dimension of the first input of a model that batches."""
        return int(next(iter(self.inputs.values())).shape[0])

    def rows_of(self, rows: slice | np.ndarray) -> Example:
        """Return an example of the same model with these rows of the inputs and of the answer.

        rows   range or indices of rows; an index may come several times
        """
        return replace(
            self,
            inputs={name: array[rows] for name, array in self.inputs.items()},
            expected={name: np.asarray(array)[rows] for name, array in self.answer.items()},
        )

    def check(self, found: Arrays | CoreError, expected: Arrays | None = None) -> None:
        """Compare names, shapes, datatypes and values of an answer with the expected ones.

        expected   None for the answer of the example; otherwise one answer of its stream or sequence
        Raises AssertionError with the inputs, the expected and the found outputs if they differ or if `found`
        is an error.
        """
        difference = self._difference(found, self.answer if expected is None else expected)
        if difference:
            raise AssertionError(f"{difference}\n  of the inputs\n{_shown(self.inputs)}")

    def _difference(self, found: Arrays | CoreError, wanted: Arrays) -> str:
        if isinstance(found, CoreError):
            return f"an error in the place of the answer: {found.message}\n  expected\n{_shown(wanted)}"
        if list(found) != list(wanted):
            return f"outputs {list(found)} were found, {list(wanted)} expected, in this order"
        for name, array in wanted.items():
            expected = np.asarray(array)
            if reason := difference_of(found[name], expected, self.tolerance):
                return (
                    f"output '{name}' is wrong: {reason}\n  expected\n{_shown({name: expected})}"
                    f"\n  found\n{_shown({name: found[name]})}"
                )
        return ""


def difference_of(found: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    """Return how an output differs from the expected one, "" if it does not.

    tolerance   relative and absolute, for floating-point elements; others must be equal
    """
    if found.shape != expected.shape:
        return f"its shape is {list(found.shape)}, not {list(expected.shape)}"
    if dtypes.of_numpy(found.dtype) is not dtypes.of_numpy(expected.dtype):
        return f"its datatype is {found.dtype}, not {expected.dtype}"
    if found.dtype.kind == "f":
        same = np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = np.asarray(
            found == (expected.astype(object) if expected.dtype.kind == "S" else expected)
        )
    if same.all():
        return ""
    first = tuple(int(i) for i in np.argwhere(~same)[0])
    return (
        f"{np.count_nonzero(~same)} of {found.size} elements differ, first {list(first)}: "
        f"{found[first]!r}, not {expected[first]!r}"
    )


def _shown(arrays: Arrays) -> str:
    """Return names, datatypes, shapes and values as text. Long arrays are shortened."""
    lines = []
    for name, array in arrays.items():
        values = np.array2string(array, threshold=60, edgeitems=2, prefix="      ")
        lines.append(f"    {name}: {array.dtype} {list(array.shape)}\n      {values}")
    return "\n".join(lines)


def write_model(
    example: Example,
    repository: Path,
    supports: Iterable[str],
    *,
    instances: int = 1,
    gpu: bool = False,
    name: str = MODEL,
    backend: str = "",
    left_out: Collection[str] = (),
) -> Path:
    """Write a model folder with version 1 and a config.pbtxt, and return the folder.

    supports    capabilities of the backend, as in Kit.supports
    instances   number of instances; used for GPUs and for backends that support "cpu"
    gpu         put the instances on GPU 0
    backend     name of the backend in config.pbtxt; "" for the backend of the example
    left_out    fields of the configuration that are not written
    """
    folder = repository / name
    shutil.copytree(example.files, folder / "1", ignore=shutil.ignore_patterns("__pycache__"))
    config = _config(example, "batching" in supports)
    for field in left_out:
        config.ClearField(field)
    if (
        "max_batch_size" in left_out
        and config.WhichOneof("scheduling_choice") == "dynamic_batching"
    ):
        config.ClearField("dynamic_batching")  # it needs a batch size
    config.name = name
    config.backend = backend or config.backend
    if gpu:
        del config.instance_group[:]
        config.instance_group.add(kind=ModelInstanceGroup.KIND_GPU, count=instances, gpus=[0])
    elif "cpu" in supports:
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
    config.backend = config.backend or example.backend.name or "under_test"
    if batches and config.WhichOneof("scheduling_choice") is None:
        config.dynamic_batching.SetInParent()
    return config


def _config_of_arrays(example: Example, batches: bool) -> ModelConfig:
    """Return a configuration with the names, datatypes and shapes of the example's arrays.

    batches   whether the first dimension of each array is the batch. A list of answers makes it decoupled
    """
    config = ModelConfig(max_batch_size=BATCH if batches else 0)
    first = example.expected
    if not isinstance(first, Mapping):  # a stream
        first = first[0]
        config.model_transaction_policy.decoupled = True
    for entries, arrays in ((config.input, example.inputs), (config.output, first)):
        for name, array in arrays.items():
            shape = array.shape[1:] if batches else array.shape
            dtype = Tensor.of(name, array).dtype
            entries.add(name=name, data_type=dtype.number, dims=shape)
    return config
