"""Rules of sequence_batching.state: tensors that the server keeps between requests of a sequence."""

from __future__ import annotations

from core import dtypes
from core.config.messages import DataType, ModelConfig, ModelSequenceBatching
from core.config.validation.refusal import refused

_ANY_SIZE = "a dimension must be integer >= 1, or -1 to indicate a variable-size dimension"


def check_states(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for a wrong state, a wrong or second initial value, or a repeated name."""
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for index, state in enumerate(config.sequence_batching.state):
        place = f"sequence_batching.state[{index}]"
        _check_state(config, state, place)
        if (first := inputs.setdefault(state.input_name, index)) != index:
            text = f"State input name '{state.input_name}' specified more than once"
            raise refused(config, text, f"{place}, and state[{first}]")
        if (first := outputs.setdefault(state.output_name, index)) != index:
            text = f"State output name '{state.output_name}' specified more than once"
            raise refused(config, text, f"{place}, and state[{first}]")
        if (count := len(state.initial_state)) > 1:
            raise refused(
                config,
                f"initial_state field for state input '{state.input_name}' must contain exactly "
                f"one or zero element. Found '{count}' elements",
                f"{place}.initial_state",
            )
        if state.initial_state:
            _check_initial_state(config, state, f"{place}.initial_state")


def _check_state(config: ModelConfig, state: ModelSequenceBatching.State, place: str) -> None:
    """Raise CoreError(INVALID) without a name or datatype, or for a dimension below 1 that is not -1."""
    for field in ("input_name", "output_name"):
        if not getattr(state, field):
            raise refused(config, f"state must specify '{field}'", place)
    what = f"state '{state.input_name}'"
    if state.data_type not in dtypes.BY_NUMBER:
        found = f"{place}.data_type is {_name(state.data_type)}"
        raise refused(config, f"{what} must specify 'data_type'", found)
    for index, dim in enumerate(state.dims):
        if dim < 1 and dim != -1:
            raise refused(config, f"{what}: {_ANY_SIZE}", f"{place}.dims[{index}] is {dim}")


def _check_initial_state(
    config: ModelConfig, state: ModelSequenceBatching.State, place: str
) -> None:
    name, initial = state.input_name, state.initial_state[0]
    if initial.data_type != state.data_type:
        raise refused(
            config,
            f"The data type used for 'initial_state' field of state '{name}' does not match the "
            "state data type",
            f"{place}.data_type is {_name(initial.data_type)}, the state's is "
            f"{_name(state.data_type)}",
        )
    if not initial.name:
        text = f"Field 'name' must be set when using initial_state for state input '{name}'"
        raise refused(config, text, place)
    if len(initial.dims) != len(state.dims):
        raise refused(
            config,
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions "
            f"for state input '{name}'. {len(initial.dims)} != {len(state.dims)}",
            f"{place}.dims is {list(initial.dims)}, the state's are {list(state.dims)}",
        )
    for index, (found, expected) in enumerate(zip(initial.dims, state.dims, strict=True)):
        where = f"{place}.dims[{index}] is {found}"
        if found == -1:
            text = (
                f"'initial_state' field for state input name '{name}' contains variable dimensions"
            )
            raise refused(config, text, where)
        what = f"'initial_state' dim for input name '{name}'"
        if expected not in (-1, found):
            text = f"{what} doesn't match 'state' dim description. {found} != {expected}"
            raise refused(config, text, where)
        if found < 0:  # 0 is valid: a growing state may begin empty
            raise refused(config, f"{what} must be integer >= 0", where)
    source = initial.WhichOneof("state_data")
    if source is None or (source == "data_file" and not initial.data_file):
        text = f"initial_state setting expects state '{name}' to have state_data set"
        raise refused(config, text, f"{place} has neither zero_data nor data_file")


def _name(data_type: int) -> str:
    return DataType.Name(data_type) if data_type in DataType.values() else str(data_type)
