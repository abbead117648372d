"""Puts settings into a configuration, and shows the live part of one. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core import config as configuration
from core.config import ModelConfig
from core.errors import invalid
from core_settings.fields import LIMITER, LIVE, Live

Settings = Mapping[str, Any]
"""Settings in their normal form (fields.py), without null."""


def merged(settings: Settings, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the members of `patch` in their place; null removes one (RFC 7396)."""
    found = dict(settings)
    for name, value in patch.items():
        if isinstance(value, Mapping):
            below = found.get(name)
            found[name] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            found[name] = value
        if found[name] is None or found[name] == {}:
            del found[name]
    return found


def configured(config: ModelConfig, settings: Settings) -> ModelConfig:
    """Return a copy of a configuration with the settings in it.

    Raises CoreError(INVALID) for a scheduler, a strategy or an instance group that the model has not.
    """
    found = ModelConfig()
    found.CopyFrom(config)
    for name, value in settings.items():
        if name == LIMITER:
            for group, limiter in value.items():
                _put(_group(found, group).rate_limiter, limiter)
        else:
            _check_scheduler(found, name, value)
            _put(getattr(found, name), value)
    return found


def _check_scheduler(config: ModelConfig, name: str, value: Settings) -> None:
    if not name.endswith("batching"):
        return
    if not config.HasField(name):
        raise invalid(
            f"settings of model '{config.name}': its configuration has no {name}, which cannot be added "
            f"while it serves: add `{name} {{ }}`, and load the model again"
        )
    if name == "sequence_batching":
        has = config.sequence_batching.WhichOneof("strategy_choice") or "direct"
        if other := sorted({"direct", "oldest"} & set(value) - {has}):
            raise invalid(
                f"settings of model '{config.name}': sequence_batching.{other[0]} is not its strategy; "
                f"it has {has}"
            )


def _group(config: ModelConfig, name: str) -> Any:
    for group in config.instance_group:
        if group.name == name:
            return group
    groups = ", ".join(group.name for group in config.instance_group) or "none"
    raise invalid(
        f"settings of model '{config.name}': {LIMITER}.{name}: there is no such instance group; there are: "
        f"{groups}"
    )


def _put(message: Any, settings: Settings) -> None:
    for name, value in settings.items():
        field = getattr(message, name)
        if isinstance(value, list):
            del field[:]
            for each in value:
                if isinstance(each, Mapping):
                    _put(field.add(), each)
                else:
                    field.append(each)
        elif isinstance(value, Mapping):
            if message.DESCRIPTOR.fields_by_name[name].message_type.GetOptions().map_entry:
                for level, each in value.items():
                    _put(field[int(level)], each)
            else:
                field.SetInParent()
                _put(field, value)
        elif isinstance(value, str) and (kind := message.DESCRIPTOR.fields_by_name[name].enum_type):
            setattr(message, name, kind.values_by_name[value].number)
        else:
            setattr(message, name, value)


def live_part(config: ModelConfig) -> dict[str, Any]:
    """Return the settings that a configuration has, defaults included."""
    part = ModelConfig()
    for name in LIVE:
        if config.HasField(name):
            getattr(part, name).CopyFrom(getattr(config, name))
    part.response_cache.SetInParent()
    if part.HasField("dynamic_batching"):
        part.dynamic_batching.default_queue_policy.SetInParent()
    part.instance_group.extend(each for each in config.instance_group if each.HasField(LIMITER))
    whole = configuration.to_json(part)
    found = _selected(whole, LIVE)
    if whole["instance_group"]:
        found[LIMITER] = {each["name"]: each[LIMITER] for each in whole["instance_group"]}
    return found


def _selected(value: Mapping[str, Any], live: Live) -> dict[str, Any]:
    found = {}
    for name, below in live.items():
        if name in value:
            found[name] = value[name] if below is None else _selected(value[name], below)
    return found


def difference(before: Settings, after: Settings) -> dict[str, dict[str, Any]]:
    """Return path of each field that differs → {"from": …, "to": …}; null for a field that is not there."""
    one, other = dict(_leaves(before)), dict(_leaves(after))
    return {
        path: {"from": one.get(path), "to": other.get(path)}
        for path in sorted({*one, *other})
        if one.get(path) != other.get(path)
    }


def _leaves(settings: Settings, path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        place = f"{path}.{name}" if path else name
        found += _leaves(value, place) if isinstance(value, Mapping) else [(place, value)]
    return found


def as_text(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return changes as text: "response_cache.enable false → true, …"."""
    return ", ".join(
        f"{path} {json.dumps(each['from'])} → {json.dumps(each['to'])}"
        for path, each in changes.items()
    )
