"""The configuration of a version as it is used: completed, normalised and validated. And its signature.

ModelSource ─► [settled] ─► ModelVersion.  Worker thread: plugins and backends read files.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from core import config as configuration
from core import plugins
from core.backend import Backend
from core.config import ModelConfig, Signature
from core.errors import call_author, internal
from core.lifecycle.host import Host
from core.lifecycle.parameters import refuse_scattered_sequences, warn_of_slips
from core.options import Options
from core.pipeline.batching.rule import warn_of_library
from core.repository import ModelSource


def settled(
    source: ModelSource, version: int, backend: Backend | None, host: Host
) -> tuple[ModelConfig, ModelConfig, Signature]:
    """Return the configuration to load by, the same before `Host.overlay`, and the latter's signature.

    Raises the errors of `settled_config`, of `signature_of` and of the overlay.
    """
    plain = settled_config(source, version, backend, host.options, host.gpus)
    signature = configuration.signature_of(plain, source.directory.path, version)
    return host.overlay(source, plain), plain, signature


def settled_config(
    source: ModelSource,
    version: int,
    backend: Backend | None,
    options: Options,
    gpus: Sequence[int],
) -> ModelConfig:
    """Return the completed configuration of a version, made from a copy of the source's. Worker thread.

    gpus   ids of the GPUs that instances may be placed on
    Raises CoreError, also in place of an exception of the backend's complete().
    """
    config, path = deepcopy(source.config), source.path(version)
    if (file := plugins.file_of(backend)) is not None and not config.runtime:
        config.runtime = file.name
    if backend is not None and not options.disable_auto_complete_config:
        _complete(config, path, backend)
    configuration.normalise(config, backend.instances if backend else {}, gpus)
    least = options.value("min_supported_compute_capability")
    configuration.validate(config, plugins.formats(), gpus, least)
    refuse_scattered_sequences(config, options.workers)
    if backend is not None:
        warn_of_slips(config, backend)
        warn_of_library(config, path)
    return config


def _complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Complete the configuration from a version's files in `path`: first plugins, then the backend."""
    if plugins.listens("core_complete_config"):
        found = plugins.ask("core_complete_config", config=deepcopy(config), path=path)
        if found is not None:
            if not isinstance(found, ModelConfig):
                raise internal(
                    f"core_complete_config of a plugin returned a {type(found).__name__}, not a ModelConfig"
                )
            configuration.complete(config, found)
    if backend.complete:
        completed = deepcopy(config)
        call_author(backend.name, "complete", backend.complete, completed, path, backend)
        configuration.complete(config, completed)
