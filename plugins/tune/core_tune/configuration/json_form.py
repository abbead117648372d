"""Settings of a configuration in JSON, and the configuration with other settings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from core.errors import invalid
from core_tune.configuration.threads import ThreadParameters
from core_tune.settings import CPU, Settings


def settings_of(config: Mapping[str, Any], threads: ThreadParameters | None = None) -> Settings:
    """Return the settings that a completed configuration has.

    threads   of its backend; None if it declares none
    Raises CoreError for a model without instances of its own, or with several groups of them.
    """
    name = config.get("name", "")
    if "ensemble_scheduling" in config:
        steps = [each["model_name"] for each in config["ensemble_scheduling"].get("step", ())]
        raise invalid(
            f"model '{name}' is an ensemble, which has no instances; tune its steps: "
            f"{', '.join(dict.fromkeys(steps))}"
        )
    group = _group(config)
    count = int(group.get("count", 1))
    batch, delay, least = _batching(config)
    return Settings(
        instances=count,
        batch=batch,
        delay_us=delay,
        least=least,
        threads=threads.threads_of(config, count) if threads else 0,
        kind=str(group.get("kind", CPU)),
    )


def with_settings(
    config: Mapping[str, Any], settings: Settings, threads: ThreadParameters | None = None
) -> dict[str, Any]:
    """Return a copy of a configuration with these settings. Other fields stay."""
    made = copy.deepcopy(dict(config))
    group = _group(made)
    group["count"] = settings.instances
    if settings.kind != group.get("kind", CPU):
        group["kind"] = settings.kind
        group.pop("gpus", None)  # those of the other kind
    if threads is not None and settings.threads:
        parameters = dict(made.get("parameters", {}))
        for name, value in threads.values(settings).items():
            parameters[name] = {"string_value": value}
        made["parameters"] = parameters
    wanted = settings.batch, settings.delay_us, settings.least
    if "sequence_batching" in made or not settings.batch or wanted == _batching(made):
        return made
    batching = made.get("dynamic_batching")
    if settings.batch == 1 and not batching:
        made.pop("dynamic_batching", None)
        return made
    batching = dict(batching or {})
    batching["preferred_batch_size"] = [*settings.sizes]
    batching["max_queue_delay_microseconds"] = settings.delay_us
    made["dynamic_batching"] = batching
    return made


def _batching(config: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return largest batch, delay and least batch."""
    rows = int(config.get("max_batch_size", 0))
    batching = config.get("dynamic_batching")
    if batching is None or not rows:
        return min(rows, 1), 0, 0
    preferred = [int(each) for each in batching.get("preferred_batch_size", ())]
    batch = max(preferred, default=rows)
    least = min(preferred, default=0) if len(preferred) > 1 else 0
    delay = int(batching.get("max_queue_delay_microseconds", 0)) if batch > 1 else 0
    return batch, delay, least


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
