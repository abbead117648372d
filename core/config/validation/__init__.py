"""Whether a normalised configuration makes sense by itself; texts are Triton's."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.messages import ModelConfig


def validate(config: ModelConfig, gpus: Sequence[int] = ()) -> None:
    """Raise CoreError(INVALID) for the first rule that the configuration breaks."""
