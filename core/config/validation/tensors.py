"""Rules of input and output."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core import dtypes
from core.config.formats import TENSORRT_PLAN
from core.config.messages import DataType, ModelConfig, ModelInput, ModelOutput
from core.config.validation.refusal import refused

_ANY_SIZE = "or -1 to indicate a variable-size dimension"


def check_tensors(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for a wrong input or output, and for two inputs or outputs of one name."""
    for index, io in enumerate(config.input):
        place = f"input[{index}]"
        _check_tensor(config, io, "model input ", place)
        _check_format(config, io, place)
        _check_tensorrt_only(config, io, "input", place)
    for index, output in enumerate(config.output):
        place = f"output[{index}]"
        _check_tensor(config, output, "model output ", place)
        _check_tensorrt_only(config, output, "output", place)
    _check_names(config, [io.name for io in config.input], "input")
    _check_names(config, [io.name for io in config.output], "output")


def _check_names(config: ModelConfig, names: Sequence[str], kind: str) -> None:
    """Raise CoreError(INVALID) if `names` has one twice: a request has one tensor for each name."""
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if (first := seen.setdefault(name, index)) != index:
            text = f"model {kind} '{name}' is specified more than once"
            raise refused(config, text, f"{kind}[{index}], and {kind}[{first}]")


def _check_tensor(
    config: ModelConfig, io: ModelInput | ModelOutput, prefix: str, place: str
) -> None:
    if not io.name:
        raise refused(config, f"{prefix}must specify 'name'", place)
    prefix = f"{prefix}'{io.name}' "
    if io.data_type not in dtypes.BY_NUMBER:
        found = DataType.Name(io.data_type) if io.data_type in DataType.values() else io.data_type
        raise refused(config, f"{prefix}must specify 'data_type'", f"{place}.data_type is {found}")
    if not io.dims:
        raise refused(config, f"{prefix}must specify 'dims'", place)
    if not config.max_batch_size and io.HasField("reshape") and not io.reshape.shape:
        raise refused(
            config,
            f"{prefix}cannot have empty reshape for non-batching model as scalar tensors are not "
            "supported",
            f"{place}.reshape",
        )
    for index, dim in enumerate(io.dims):
        if dim < 1 and dim != -1:
            text = f"{prefix}dimension must be integer >= 1, {_ANY_SIZE}"
            raise refused(config, text, f"{place}.dims[{index}] is {dim}")
    if io.HasField("reshape"):
        _check_reshape(config, io.dims, io.reshape.shape, prefix, place)


def _check_reshape(
    config: ModelConfig, dims: Sequence[int], shape: Sequence[int], prefix: str, place: str
) -> None:
    """Raise CoreError(INVALID) for a bad dimension in `shape`, or if `_stretches` of both shapes differ."""
    for index, dim in enumerate(shape):
        if dim < 1 and dim != -1:
            text = f"{prefix}reshape dimensions must be integer >= 1, {_ANY_SIZE}"
            raise refused(config, text, f"{place}.reshape.shape[{index}] is {dim}")
    before, after = _stretches(dims), _stretches(shape)
    if before == after:
        return
    both = f"{place}.dims is {list(dims)}, {place}.reshape.shape is {list(shape)}"
    if len(before) > 1 and len(after) > 1 and len(before) != len(after):
        text = f"{prefix}has different number of variable-size dimensions for dims and reshape"
        raise refused(config, text, both)
    raise refused(config, f"{prefix}has different size for dims and reshape", both)


def _stretches(shape: Sequence[int]) -> list[int]:
    """Return the numbers of elements between the variable dimensions: [2, 4, -1, 6] → [8, 6]."""
    found: list[list[int]] = [[]]
    for dim in shape:
        if dim == -1:
            found.append([])
        else:
            found[-1].append(dim)
    return [math.prod(stretch) for stretch in found]


def _check_format(config: ModelConfig, io: ModelInput, place: str) -> None:
    if io.format not in ModelInput.Format.values():
        known = ", ".join(ModelInput.Format.keys())
        text = f"model input '{io.name}' has the unknown format {io.format}"
        raise refused(config, text, f"{place}.format; there are {known}")
    if io.format != ModelInput.FORMAT_NONE and len(io.dims) != 3:
        found = f"{place} ('{io.name}').dims is {list(io.dims)}"
        raise refused(config, "model input NHWC/NCHW require 3 dims", found)


def _check_tensorrt_only(
    config: ModelConfig, io: ModelInput | ModelOutput, kind: str, place: str
) -> None:
    place = f"{place} ('{io.name}')"
    if io.is_shape_tensor and config.platform != TENSORRT_PLAN:
        text = "shape tensors are only supported for TensorRT platform"
        raise refused(config, text, f"{place}.is_shape_tensor")
    if not io.is_non_linear_format_io:
        return
    if config.platform != TENSORRT_PLAN:
        text = "Non-linear IO format is only supported for the TensorRT platform"
        raise refused(config, text, f"{place}.is_non_linear_format_io")
    if len(io.dims) != 3:
        text = f"Non-linear IO format {kind} requires 3 dims"
        raise refused(config, text, f"{place}.dims is {list(io.dims)}")
