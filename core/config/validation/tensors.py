"""Rules of input, output, batch_input and batch_output."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core import dtypes
from core.config.messages import (
    TYPE_FP32,
    TYPE_INT32,
    BatchInput,
    BatchOutput,
    ModelConfig,
    ModelInput,
    ModelOutput,
)
from core.errors import CoreError, invalid

_TENSORRT = "tensorrt_plan"
_ANY_SIZE = "or -1 to indicate a variable-size dimension"


def check_tensors(config: ModelConfig) -> None:
    """Each input and output by itself."""
    seen = set()
    for io in config.input:
        _check_tensor(io, "model input ", config)
        if io.format != ModelInput.FORMAT_NONE and len(io.dims) != 3:
            raise _refused("model input NHWC/NCHW require 3 dims", config)
        _check_tensorrt_only(io, "input", config)
        if io.name in seen:  # no request could give it twice
            raise _refused(f"model input '{io.name}' is specified more than once", config)
        seen.add(io.name)
    for output in config.output:
        _check_tensor(output, "model output ", config)
        _check_tensorrt_only(output, "output", config)


def check_batch_tensors(config: ModelConfig) -> None:
    """What the server computes for a whole batch names tensors that the model has."""
    inputs = {io.name for io in config.input}
    outputs = {io.name for io in config.output}
    for batch_input in config.batch_input:
        kind = BatchInput.Kind.Name(batch_input.kind)
        _check_sources(batch_input.source_input, inputs, f"batch input kind '{kind}'", config)
        if batch_input.data_type not in (TYPE_INT32, TYPE_FP32):
            raise _refused("batch input data type must be TYPE_INT32 or TYPE_FP32", config)
    for batch_output in config.batch_output:
        kind = BatchOutput.Kind.Name(batch_output.kind)
        _check_sources(batch_output.source_input, inputs, f"batch output kind '{kind}'", config)
        _check_targets(batch_output.target_name, outputs, config)


def _refused(text: str, config: ModelConfig) -> CoreError:
    return invalid(f"{text} for {config.name}")


def _check_tensor(io: ModelInput | ModelOutput, prefix: str, config: ModelConfig) -> None:
    if not io.name:
        raise _refused(f"{prefix}must specify 'name'", config)
    prefix = f"{prefix}'{io.name}' "
    if io.data_type not in dtypes.BY_NUMBER:
        raise _refused(f"{prefix}must specify 'data_type'", config)
    if not io.dims:
        raise _refused(f"{prefix}must specify 'dims'", config)
    if not config.max_batch_size and io.HasField("reshape") and not io.reshape.shape:
        raise _refused(
            f"{prefix}cannot have empty reshape for non-batching model as scalar tensors are not "
            "supported",
            config,
        )
    if not all(dim >= 1 or dim == -1 for dim in io.dims):
        raise _refused(f"{prefix}dimension must be integer >= 1, {_ANY_SIZE}", config)
    if io.HasField("reshape"):
        _check_reshape(io.dims, io.reshape.shape, prefix, config)


def _check_reshape(
    dims: Sequence[int], shape: Sequence[int], prefix: str, config: ModelConfig
) -> None:
    """As many elements on either side, also in each stretch between two variable dimensions."""
    if not all(dim >= 1 or dim == -1 for dim in shape):
        raise _refused(f"{prefix}reshape dimensions must be integer >= 1, {_ANY_SIZE}", config)
    before, after = _stretches(dims), _stretches(shape)
    if before == after:
        return
    if len(before) > 1 and len(after) > 1 and len(before) != len(after):
        raise _refused(
            f"{prefix}has different number of variable-size dimensions for dims and reshape",
            config,
        )
    raise _refused(f"{prefix}has different size for dims and reshape", config)


def _stretches(shape: Sequence[int]) -> list[int]:
    """Numbers of elements between the variable dimensions: [2, 4, -1, 6] → [8, 6]."""
    found: list[list[int]] = [[]]
    for dim in shape:
        if dim == -1:
            found.append([])
        else:
            found[-1].append(dim)
    return [math.prod(stretch) for stretch in found]


def _check_tensorrt_only(io: ModelInput | ModelOutput, kind: str, config: ModelConfig) -> None:
    if io.is_shape_tensor and config.platform != _TENSORRT:
        raise _refused("shape tensors are only supported for TensorRT platform", config)
    if io.is_non_linear_format_io:
        if config.platform != _TENSORRT:
            raise _refused(
                "Non-linear IO format is only supported for the TensorRT platform", config
            )
        if len(io.dims) != 3:
            raise _refused(f"Non-linear IO format {kind} requires 3 dims", config)


def _check_sources(
    sources: Sequence[str], inputs: set[str], what: str, config: ModelConfig
) -> None:
    if len(sources) != 1:
        raise _refused(f"{what} expects 1 source input, got {len(sources)}", config)
    if sources[0] not in inputs:
        raise _refused(f"unknown source input name '{sources[0]}'", config)


def _check_targets(targets: Sequence[str], outputs: set[str], config: ModelConfig) -> None:
    seen = set()
    for name in targets:
        if name not in outputs:
            raise _refused(f"unknown target output name '{name}'", config)
        if name in seen:
            raise _refused(f"target output name '{name}' can only be specified once", config)
        seen.add(name)
