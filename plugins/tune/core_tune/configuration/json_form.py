"""Settings of a configuration in JSON, and the configuration with other settings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from core.errors import invalid
from core_tune.settings import Settings


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Return the settings that a completed configuration has. Raises CoreError for a model without instances
    of its own, or with several groups of them.
    """
    name = config.get("name", "")
    if "ensemble_scheduling" in config:
        steps = [each["model_name"] for each in config["ensemble_scheduling"].get("step", ())]
        raise invalid(
            f"model '{name}' is an ensemble, which has no instances; tune its steps: "
            f"{', '.join(dict.fromkeys(steps))}"
        )
    group = _group(config)
    rows = int(config.get("max_batch_size", 0))
    batching = config.get("dynamic_batching")
    batch, delay = min(rows, 1), 0
    if batching is not None and rows:
        preferred = [int(each) for each in batching.get("preferred_batch_size", ())]
        batch = max(preferred, default=rows)
        delay = int(batching.get("max_queue_delay_microseconds", 0))
    return Settings(int(group.get("count", 1)), batch, delay if batch > 1 else 0)


def with_settings(config: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return a copy of a configuration with these settings. Other fields stay."""
    made = copy.deepcopy(dict(config))
    _group(made)["count"] = settings.instances
    if "sequence_batching" in made or not settings.batch:
        return made
    batching = made.get("dynamic_batching")
    if settings.batch == 1 and not batching:
        made.pop("dynamic_batching", None)
        return made
    batching = dict(batching or {})
    batching["preferred_batch_size"] = [settings.batch]
    batching["max_queue_delay_microseconds"] = settings.delay_us
    made["dynamic_batching"] = batching
    return made


def _group(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the only group of instances that serves."""
    groups = [each for each in config.get("instance_group", ()) if not each.get("passive")]
    if len(groups) != 1:
        raise invalid(
            f"model '{config.get('name', '')}' has {len(groups)} groups of instances that serve; "
            "core tune changes models with one"
        )
    group: dict[str, Any] = groups[0]
    return group
