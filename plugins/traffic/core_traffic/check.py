"""Check: what a configuration says of traffic, without a server. Each load and `core check` call it."""

from __future__ import annotations

from core.config import ModelConfig
from core.errors import invalid
from core_traffic.model import parameter_of
from core_traffic.settings import Traffic


def check_parameter(config: ModelConfig) -> None:
    """Raise the CoreError(INVALID) of a load for wrong settings, but for those that only a server knows."""
    traffic_of(config.name, config)


def traffic_of(name: str, config: ModelConfig) -> Traffic | None:
    """Return the settings in the parameter `traffic`; None without it. Raises CoreError(INVALID)."""
    if not (text := parameter_of(config)):
        return None
    traffic = Traffic.parse(name, text)
    check_sequences(name, traffic, config)
    return traffic


def check_sequences(name: str, traffic: Traffic, config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for copies of a model with sequences."""
    if traffic.shadow is not None and config.HasField("sequence_batching"):
        raise invalid(
            f"traffic of model '{name}': shadow: the model has sequences (sequence_batching), whose "
            "state cannot be copied; leave out 'shadow'"
        )
