"""Rules of sequence_batching.state: tensors that the server keeps between requests of a sequence."""

from __future__ import annotations

from core.config.messages import ModelConfig, ModelSequenceBatching
from core.errors import invalid

State = ModelSequenceBatching.State
InitialState = ModelSequenceBatching.InitialState


def check_states(config: ModelConfig) -> None:
    seen = set()
    for state in config.sequence_batching.state:
        count = len(state.initial_state)
        if count > 1:
            raise invalid(
                f"initial_state field for state input '{state.input_name}' must contain exactly "
                f"one or zero element. Found '{count}' elements."
            )
        if state.input_name in seen:
            raise invalid(f"State input name '{state.input_name}' specified more than once.")
        seen.add(state.input_name)
        for initial in state.initial_state:
            _check_initial_state(initial, state)


def _check_initial_state(
    initial: ModelSequenceBatching.InitialState, state: ModelSequenceBatching.State
) -> None:
    name = state.input_name
    if initial.data_type != state.data_type:
        raise invalid(
            f"The data type used for 'initial_state' field of state '{name}' does not match the "
            "state data type."
        )
    if not initial.name:
        raise invalid(
            f"Field 'name' must be set when using initial_state for state input '{name}'."
        )
    if len(initial.dims) != len(state.dims):
        raise invalid(
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions "
            f"for state input '{name}'. {len(initial.dims)} != {len(state.dims)}"
        )
    for found, expected in zip(initial.dims, state.dims, strict=True):
        if found == -1:
            raise invalid(
                f"'initial_state' field for state input name '{name}' contains variable dimensions."
            )
        if expected not in (-1, found):
            raise invalid(
                f"'initial_state' dim for input name '{name}' doesn't match 'state' dim "
                f"description. {found} != {expected}"
            )
    if initial.WhichOneof("state_data") is None:
        raise invalid(f"initial_state setting expects state '{name}' to have state_data set")
