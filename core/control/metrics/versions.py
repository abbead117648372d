"""The labels of model versions: made once, not in each scrape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from core.config.messages import ModelConfig
from core.lifecycle import ModelVersion
from core.telemetry.labels import Labels


class Known(NamedTuple):
    """Labels of a version that is READY.

    config    that they were made for; other instances are another one
    plain     for what is told of the version
    counted   for what its instances count, which is theirs: also by the GPU that they are on
    """

    config: ModelConfig
    plain: Labels
    counted: Labels


class VersionLabels:
    """Those of one server's versions. Loop thread only.

    uuid   id of a GPU → its UUID, None as long as that is not known
    """

    def __init__(self, uuid: Callable[[int], str | None]):
        self._uuid = uuid
        self._known: dict[int, Known] = {}  # by identity of the version, of the last scrape

    def of(self, ready: Sequence[ModelVersion]) -> list[Known]:
        """Those of the last scrape, where nothing has changed. What is kept of a version that has gone is
        not taken for that of another: each has a configuration of its own, which `Known` keeps alive."""
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
        # Without, the same object: what is written of it serves for both.
        counted = plain if uuid is None else plain.plus("gpu_uuid", uuid)
        return Known(version.config, plain, counted)


def _gpu_of(config: ModelConfig) -> list[int]:
    """The one GPU that all instances are on; empty where there is none, or several."""
    numbers: set[int] = set()
    for group in config.instance_group:
        if group.kind != group.KIND_GPU:
            return []
        numbers.update(group.gpus)
    return list(numbers) if len(numbers) == 1 else []


def labels_of(version: ModelVersion) -> dict[str, str]:
    """Labels of a version's samples; tags of its configuration start with an underscore."""
    tags: Mapping[str, str] = {}
    if version.state == "READY":
        tags = {f"_{key}": value for key, value in version.config.metric_tags.items()}
    return {**tags, **named(version.namespace, version.name), "version": str(version.version)}


def named(namespace: str | None, model: str) -> dict[str, str]:
    """Labels of a model."""
    return {"model": model} if namespace is None else {"namespace": namespace, "model": model}
