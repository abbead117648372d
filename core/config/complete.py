"""Copy the fields that a backend read from the model's file into the configuration."""

from __future__ import annotations

from core.config.messages import ModelConfig
from core.errors import internal


def complete(config: ModelConfig, updated: ModelConfig) -> None:
    """Copy the fields that a backend may change from `updated` to `config`, in place.

    These are max_batch_size, input, output, decoupled, and what `config` lacks: the scheduler, and entries of
    `parameters`. All other fields of `updated` are ignored.
    Raises CoreError(INTERNAL) if `updated` has another scheduler than `config`.
    """
    before, after = (each.WhichOneof("scheduling_choice") for each in (config, updated))
    if before and before != after:
        raise internal(
            f"Cannot update scheduling choice from {before} to {after or 'none'} "
            "when auto-completing."
        )
    config.max_batch_size = updated.max_batch_size
    for name in ("input", "output"):
        config.ClearField(name)
        getattr(config, name).extend(getattr(updated, name))
    for name in set(updated.parameters) - set(config.parameters):
        config.parameters[name].CopyFrom(updated.parameters[name])
    if not before and after:
        getattr(config, after).CopyFrom(getattr(updated, after))
    if updated.HasField("model_transaction_policy"):
        config.model_transaction_policy.decoupled = updated.model_transaction_policy.decoupled
