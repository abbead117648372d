"""Copy the fields that a backend read from the model's file into the configuration."""

from __future__ import annotations

from core.config.messages import ModelConfig
from core.errors import internal


def complete(config: ModelConfig, updated: ModelConfig) -> None:
    """Copy the fields that a backend may change from `updated` to `config`, in place.

    These are max_batch_size, input, output, decoupled, and the scheduler if `config` has none. All other
    fields of `updated` are ignored.
    Raises CoreError(INTERNAL) if `updated` has another scheduler than `config`.
    """
    before = config.WhichOneof("scheduling_choice")
    after = updated.WhichOneof("scheduling_choice")
    if before and before != after:
        raise internal(
            f"Cannot update scheduling choice from {before} to {after or 'none'} "
            "when auto-completing."
        )
    config.max_batch_size = updated.max_batch_size
    del config.input[:]
    config.input.extend(updated.input)
    del config.output[:]
    config.output.extend(updated.output)
    if not before and after:
        getattr(config, after).CopyFrom(getattr(updated, after))
    if updated.HasField("model_transaction_policy"):
        config.model_transaction_policy.decoupled = updated.model_transaction_policy.decoupled
