"""Rules of sequence_batching: control tensors and strategies."""

from __future__ import annotations

from core.config.messages import (
    TYPE_INT32,
    TYPE_INT64,
    TYPE_STRING,
    TYPE_UINT32,
    TYPE_UINT64,
    DataType,
    ModelConfig,
    ModelSequenceBatching,
)
from core.config.validation.batching import check_preferred_sizes
from core.config.validation.refusal import refused

Control = ModelSequenceBatching.Control

_FALSE_TRUE = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION_ID_TYPES = (TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32, TYPE_STRING)


def check_sequence_batching(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for a wrong control tensor or strategy of sequence_batching."""
    _check_control_names(config)
    places: dict[int, str] = {}
    for number, tensor in enumerate(config.sequence_batching.control_input):
        for index, control in enumerate(tensor.control):
            place = f"sequence_batching.control_input[{number}] ('{tensor.name}').control[{index}]"
            _check_kind(config, control, place)
            kind = Control.Kind.Name(control.kind)
            if control.kind in places:
                text = f"sequence batching specifies multiple {kind} tensors"
                raise refused(config, text, f"{places[control.kind]}, {place}")
            places[control.kind] = place
            given = [name for name in _FALSE_TRUE if getattr(control, name)]
            if control.kind == Control.CONTROL_SEQUENCE_CORRID:
                _check_correlation_id(config, control, given, kind, place)
            else:
                _check_false_true(config, control, given, kind, place)
    _check_strategy(config)


def _check_control_names(config: ModelConfig) -> None:
    seen: dict[str, int] = {}
    for index, tensor in enumerate(config.sequence_batching.control_input):
        place = f"sequence_batching.control_input[{index}]"
        if not tensor.name:
            raise refused(config, "sequence batching control tensor must have a name", place)
        if (first := seen.setdefault(tensor.name, index)) != index:
            raise refused(
                config,
                f"sequence batching control tensor '{tensor.name}' is specified for multiple "
                "control kinds",
                f"{place}, and control_input[{first}]",
            )


def _check_kind(config: ModelConfig, control: Control, place: str) -> None:
    """Raise CoreError(INVALID) for an unknown kind: the model would never get its tensor."""
    if control.kind not in Control.Kind.values():
        known = ", ".join(Control.Kind.keys())
        raise refused(
            config,
            f"unknown sequence batching control kind {control.kind}",
            f"{place}.kind; there are {known}",
        )


def _check_false_true(
    config: ModelConfig, control: Control, given: list[str], kind: str, place: str
) -> None:
    """Raise CoreError(INVALID) unless just one *_false_true field (`given`) is set, to two values."""
    if not given:
        raise refused(
            config,
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
            f"'bool_false_true' for {kind}",
            place,
        )
    if len(given) > 1:
        raise refused(
            config,
            "sequence batching specifies more than one from 'int32_false_true', "
            f"'fp32_false_true' and 'bool_false_true' for {kind}",
            f"{place} has {' and '.join(given)}",
        )
    if (count := len(getattr(control, given[0]))) != 2:
        raise refused(
            config,
            f"sequence batching control '{given[0]}' must have exactly 2 entries for {kind}",
            f"{place}.{given[0]} has {count}",
        )


def _check_correlation_id(
    config: ModelConfig, control: Control, given: list[str], kind: str, place: str
) -> None:
    if given:
        raise refused(
            config,
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
            f"'bool_false_true' for {kind}",
            f"{place}.{given[0]}",
        )
    if control.data_type not in _CORRELATION_ID_TYPES:
        allowed = [DataType.Name(number) for number in _CORRELATION_ID_TYPES]
        raise refused(
            config,
            f"unexpected data type for control {kind}",
            f"{place}.data_type. Allowed data types are {', '.join(allowed[:-1])} and {allowed[-1]}",
        )


def _check_strategy(config: ModelConfig) -> None:
    sequence = config.sequence_batching
    check_preferred_sizes(
        config,
        sequence.oldest.preferred_batch_size,
        "sequence batching preferred batch size",
        "sequence_batching.oldest",
    )
    utilization = sequence.direct.minimum_slot_utilization
    if not 0.0 <= utilization <= 1.0:
        raise refused(
            config,
            "sequence batching minimum slot utilization must be in range (0.0, 1.0]",
            f"sequence_batching.direct.minimum_slot_utilization is {utilization:g}",
        )
