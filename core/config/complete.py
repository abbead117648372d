"""Take over what a backend found in the model's file.

config.pbtxt ─► parse ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from core.config.messages import ModelConfig
from core.errors import internal


def complete(config: ModelConfig, updated: ModelConfig) -> None:
    """Take over from a backend's version of the configuration what a backend may change, in place.

    That is max_batch_size, inputs, outputs, whether the model is decoupled, and a scheduler if
    `config` has none; everything else in `updated` is ignored.
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
