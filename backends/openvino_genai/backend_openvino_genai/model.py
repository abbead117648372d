"""Model and backend: folders of OpenVINO GenAI and GGUF files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from core_generate import Description, EngineModel, engine_backend

import core
from backend_openvino_genai.files import find_files, read_facts
from backend_openvino_genai.settings import PARAMETERS, SUPPORTS, settings_of
from core.config import ModelConfig

if TYPE_CHECKING:
    from backend_openvino_genai.engine import GenAiEngine


class GenAiModel(EngineModel):
    """One version: a folder of OpenVINO GenAI, or a GGUF file."""

    engine: GenAiEngine
    _weights = 0  # bytes; set by `make_engine`

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        facts = read_facts(find_files(config, path))
        settings = settings_of(config, facts.context, facts.template)
        return Description(
            context=settings.context,
            template=settings.template,
            bos=facts.bos,
            eos=facts.eos,
            supports=SUPPORTS,
        )

    def make_engine(self) -> GenAiEngine:
        from backend_openvino_genai.engine import GenAiEngine  # it imports openvino_genai

        files = find_files(self.config, self.path)
        facts = read_facts(files)
        settings = settings_of(self.config, facts.context, facts.template)
        engine = GenAiEngine(files.path, settings, self.name)
        self._weights = files.size
        return engine

    def memory_usage(self) -> Iterable[core.MemoryUsage]:
        """Return the bytes of the weights' file and of the cache of keys and values, which may grow."""
        used = self._weights + self.engine.cache_bytes() if self._weights else 0
        on_gpu = self._weights and self.engine.device.startswith("GPU")
        return (core.MemoryUsage("GPU" if on_gpu else "CPU", 0, used),)


backend = engine_backend(GenAiModel, known_parameters=PARAMETERS)
