"""The labels of model versions: made once, not in each scrape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from core.config.messages import ModelConfig
from core.lifecycle import ModelVersion
from core.telemetry.labels import Labels


class Known(NamedTuple):
    """Labels of a version that is READY.

    config    configuration that the labels were made for; other instances have another one
    plain     labels of gauges of the version
    counted   labels of what its instances count: `plain`, and the UUID of their GPU if they all use one
    """

    config: ModelConfig
    plain: Labels
    counted: Labels


class VersionLabels:
    """The labels of the versions of one server. Loop thread only.

    uuid   id of a GPU → its UUID, None until it is known
    """

    def __init__(self, uuid: Callable[[int], str | None]):
        self._uuid = uuid
        self._known: dict[int, Known] = {}  # by identity of the version, of the last scrape

    def of(self, ready: Sequence[ModelVersion]) -> list[Known]:
        """Return the labels of each version; reuse those of the last scrape for the same configuration.

        An entry of a version that is gone cannot match a new version with the same id: each version has its
        own configuration, and `Known` keeps it alive.
        """
        found, keep = [], {}
        for version in ready:
            known = self._known.get(id(version))
            if known is None or known.config is not version.config:
                known = self._made(version)
            found.append(known)
            if known.counted is not known.plain or not _gpu_of(version.config):
                keep[id(version)] = known
        self._known = keep
        return found

    def _made(self, version: ModelVersion) -> Known:
        plain = Labels(labels_of(version))
        gpu = _gpu_of(version.config)
        uuid = self._uuid(gpu[0]) if gpu else None
        # Without a GPU the same object, so that its text is rendered once for both.
        counted = plain if uuid is None else plain.plus("gpu_uuid", uuid)
        return Known(version.config, plain, counted)


def _gpu_of(config: ModelConfig) -> list[int]:
    """Return a list with the one GPU that all instances use; empty if there is none, or several."""
    numbers: set[int] = set()
    for group in config.instance_group:
        if group.kind != group.KIND_GPU:
            return []
        numbers.update(group.gpus)
    return list(numbers) if len(numbers) == 1 else []


def labels_of(version: ModelVersion) -> dict[str, str]:
    """Return the labels of a version's samples. A READY one also has its `metric_tags`, as `_<tag>`."""
    tags: Mapping[str, str] = {}
    if version.state == "READY":
        tags = {f"_{key}": value for key, value in version.config.metric_tags.items()}
    return {**tags, **named(version.namespace, version.name), "version": str(version.version)}


def named(namespace: str | None, model: str) -> dict[str, str]:
    """Return the labels of a model: its name, and its namespace if that is not None."""
    return {"model": model} if namespace is None else {"namespace": namespace, "model": model}
