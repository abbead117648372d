"""The form of a refusal: Triton's text, the model, and the field of its configuration."""

from __future__ import annotations

from core.config.messages import ModelConfig
from core.errors import CoreError, invalid


def refused(config: ModelConfig, text: str, place: str) -> CoreError:
    """Return CoreError(INVALID) with the text "<text> for <model>: <place>".

    text    Triton's text up to " for <model>"
    place   path of the field, and its value
    """
    return invalid(f"{text} for {config.name}: {place}")
