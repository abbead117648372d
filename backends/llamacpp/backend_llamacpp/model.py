"""Model and backend: GGUF files whose engine is llama.cpp."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from core_generate import Description, EngineModel, engine_backend
from core_generate.gguf import read_metadata

import core
from backend_llamacpp.settings import CACHE_TYPES, PARAMETERS, describe, model_file, settings_of
from core.config import ModelConfig

if TYPE_CHECKING:
    from backend_llamacpp.engine import LlamaEngine


class LlamaModel(EngineModel):
    """One version: model.gguf, or the file that `default_model_filename` names."""

    _memory: tuple[core.MemoryUsage, ...] = ()

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        return describe(config, path)

    def make_engine(self) -> LlamaEngine:
        from backend_llamacpp.engine import LlamaEngine  # it imports xllamacpp

        file = model_file(self.config, self.path)
        metadata = read_metadata(file)
        settings = settings_of(self.config, self.path, metadata)
        engine = LlamaEngine(file, settings)
        cache = metadata.cache_numbers() * CACHE_TYPES[settings.cache_type]
        files = [file, *([settings.projector] if settings.projector else [])]
        used = sum(each.stat().st_size for each in files)
        used += int(cache * settings.context * settings.slots)
        self._memory = (core.MemoryUsage("CPU", 0, used),)
        return engine

    def memory_usage(self) -> Iterable[core.MemoryUsage]:
        """Return the bytes of the files and of the cache of keys and values."""
        return self._memory


backend = engine_backend(LlamaModel, known_parameters=PARAMETERS)
