"""How a refused configuration is told: Triton's text, the model, and where in its configuration."""

from __future__ import annotations

from core.config.messages import ModelConfig
from core.errors import CoreError, invalid


def refused(config: ModelConfig, text: str, place: str) -> CoreError:
    """CoreError(INVALID) "<text> for <model>: <place>".

    text    Triton's, up to " for <model>"
    place   the path of the field, and what was found there
    """
    return invalid(f"{text} for {config.name}: {place}")
