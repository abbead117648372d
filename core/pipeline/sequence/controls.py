"""Control tensors: inputs with which the server describes a sequence to its model.

Source of the rules: ModelSequenceBatching.Control in Triton's model_config.proto.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core import dtypes
from core.config.messages import ModelConfig, ModelSequenceBatching
from core.dtypes import DataType
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor

_Control = ModelSequenceBatching.Control
_Write = Callable[[InferenceRequest, bool], Tensor]


def control_writer(config: ModelConfig) -> Callable[[InferenceRequest, bool], None]:
    """Return a function (request, ready) that adds the control tensors to a request.

    ready   False for a row that only fills a batch
    """
    batched = config.max_batch_size > 0
    writers = [
        _writer(entry.name, control, batched)
        for entry in config.sequence_batching.control_input
        for control in entry.control
    ]

    def write(request: InferenceRequest, ready: bool) -> None:
        for each in writers:
            tensor = each(request, ready)
            request.inputs[tensor.name] = tensor

    return write


def _writer(name: str, control: ModelSequenceBatching.Control, batched: bool) -> _Write:
    shape = (1, 1) if batched else (1,)
    if control.kind == _Control.CONTROL_SEQUENCE_CORRID:
        dtype = dtypes.BY_NUMBER[control.data_type]
        return lambda request, ready: _correlation(name, dtype, shape, request)
    false, true = _false_true(name, control, shape)
    if control.kind == _Control.CONTROL_SEQUENCE_START:
        return lambda request, ready: true if request.flags & SEQUENCE_START else false
    if control.kind == _Control.CONTROL_SEQUENCE_END:
        return lambda request, ready: true if request.flags & SEQUENCE_END else false
    return lambda request, ready: true if ready else false


def _false_true(
    name: str, control: ModelSequenceBatching.Control, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Return (false, true): the tensors for the two values of a control other than CORRID.

    They are created once, since tensors are read-only.
    """
    values: list[int] | list[float] | list[bool]
    if control.int32_false_true:
        values, dtype = list(control.int32_false_true), dtypes.INT32
    elif control.fp32_false_true:
        values, dtype = list(control.fp32_false_true), dtypes.FP32
    else:
        values, dtype = list(control.bool_false_true), dtypes.BOOL
    false, true = (
        Tensor(name, dtype, shape, array=np.full(shape, value, dtype.numpy)) for value in values
    )
    return false, true


def _correlation(
    name: str, dtype: DataType, shape: tuple[int, ...], request: InferenceRequest
) -> Tensor:
    value: object = request.correlation_id
    if dtype is dtypes.BYTES:
        array = np.empty(shape, object)
        array[...] = str(value).encode()
    else:
        number = value if isinstance(value, int) else 0
        # Like a C cast: keep the low bits if the control is narrower than the id.
        bits = np.array(number % 2**64, np.uint64).astype(dtype.numpy)
        array = np.broadcast_to(bits, shape)
    return Tensor(name, dtype, shape, array=array)
