"""Rules of sequence_batching: control tensors and strategies."""

from __future__ import annotations

from core.config.messages import (
    TYPE_INT32,
    TYPE_INT64,
    TYPE_STRING,
    TYPE_UINT32,
    TYPE_UINT64,
    ModelConfig,
    ModelSequenceBatching,
)
from core.errors import invalid

Control = ModelSequenceBatching.Control

_FALSE_TRUE = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION_ID_TYPES = (TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32, TYPE_STRING)


def check_sequence_batching(config: ModelConfig) -> None:
    sequence, model = config.sequence_batching, config.name
    _check_control_names(sequence, model)
    controls = [control for tensor in sequence.control_input for control in tensor.control]
    for kind in Control.Kind.values():
        of_kind = [control for control in controls if control.kind == kind]
        if len(of_kind) > 1:
            raise invalid(
                f"sequence batching specifies multiple {Control.Kind.Name(kind)} tensors "
                f"for {model}"
            )
        for control in of_kind:
            if kind == Control.CONTROL_SEQUENCE_CORRID:
                _check_correlation_id(control, model)
            else:
                _check_false_true(control, model)
    _check_strategy(config)


def _check_control_names(sequence: ModelSequenceBatching, model: str) -> None:
    seen = set()
    for tensor in sequence.control_input:
        if not tensor.name:
            raise invalid(f"sequence batching control tensor must have a name for {model}")
        if tensor.name in seen:
            raise invalid(
                f"sequence batching control tensor '{tensor.name}' is specified for multiple "
                f"control kinds for {model}"
            )
        seen.add(tensor.name)


def _check_false_true(control: ModelSequenceBatching.Control, model: str) -> None:
    """One pair of values, of one datatype."""
    kind = Control.Kind.Name(control.kind)
    given = [name for name in _FALSE_TRUE if getattr(control, name)]
    if not given:
        raise invalid(
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
            f"'bool_false_true' for {kind} for {model}"
        )
    if len(given) > 1:
        raise invalid(
            "sequence batching specifies more than one from 'int32_false_true', "
            f"'fp32_false_true' and 'bool_false_true' for {kind} for {model}"
        )
    if len(getattr(control, given[0])) != 2:
        raise invalid(
            f"sequence batching control '{given[0]}' must have exactly 2 entries for {kind} "
            f"for {model}"
        )


def _check_correlation_id(control: ModelSequenceBatching.Control, model: str) -> None:
    kind = Control.Kind.Name(control.kind)
    if any(getattr(control, name) for name in _FALSE_TRUE):
        raise invalid(
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
            f"'bool_false_true' for {kind} for {model}"
        )
    if control.data_type not in _CORRELATION_ID_TYPES:
        raise invalid(
            f"unexpected data type for control {kind} for {model}. Allowed data types are "
            "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        )


def _check_strategy(config: ModelConfig) -> None:
    sequence, model = config.sequence_batching, config.name
    for size in sequence.oldest.preferred_batch_size:
        if size <= 0:
            raise invalid(f"sequence batching preferred batch size must be positive for {model}")
        if size > config.max_batch_size:
            raise invalid(
                f"sequence batching preferred batch size must be <= max batch size for {model}"
            )
    if not 0.0 <= sequence.direct.minimum_slot_utilization <= 1.0:
        raise invalid(
            f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {model}"
        )
