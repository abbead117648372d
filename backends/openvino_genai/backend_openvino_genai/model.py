"""Model and backend: folders of OpenVINO GenAI and GGUF files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from core_generate import Description, EngineModel, engine_backend

import core
from backend_openvino_genai.files import find_files, read_facts
from backend_openvino_genai.settings import PARAMETERS, settings_of
from core.config import ModelConfig
from core.errors import invalid

if TYPE_CHECKING:
    from backend_openvino_genai.embedding import EmbeddingEngine
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.ranking import RankEngine
    from backend_openvino_genai.speech import SpeechEngine

    AnyEngine = GenAiEngine | EmbeddingEngine | RankEngine | SpeechEngine


class GenAiModel(EngineModel):
    """One version: a folder of OpenVINO GenAI, or a GGUF file."""

    engine: AnyEngine
    _weights = 0  # bytes; set by `make_engine`

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        files = find_files(config, path)
        facts = read_facts(files)
        settings = settings_of(config, facts)
        if settings.task != "generate" and files.is_gguf:
            what = {"embed": "embeddings", "rank": "scores"}.get(settings.task, "transcripts")
            raise invalid(
                f"model '{config.name}': OpenVINO GenAI computes {what} with folders only, not with GGUF "
                "files; remove the parameter 'task', or export the model as a folder"
            )
        return Description(
            task=settings.task,
            context=settings.context,
            template=settings.template,
            bos=facts.bos,
            eos=facts.eos,
            supports=settings.supports,
        )

    def make_engine(self) -> AnyEngine:
        # They import openvino_genai.
        from backend_openvino_genai.embedding import EmbeddingEngine
        from backend_openvino_genai.engine import GenAiEngine
        from backend_openvino_genai.ranking import RankEngine
        from backend_openvino_genai.speech import SpeechEngine

        files = find_files(self.config, self.path)
        settings = settings_of(self.config, read_facts(files))
        engine: AnyEngine
        if settings.task == "embed":
            engine = EmbeddingEngine(files.path, settings)
        elif settings.task == "rank":
            engine = RankEngine(files.path, settings)
        elif settings.task == "transcribe":
            engine = SpeechEngine(files.path, settings)
        else:
            engine = GenAiEngine(files.path, settings, self.name)
        self._weights = files.size
        return engine

    def memory_usage(self) -> Iterable[core.MemoryUsage]:
        """Return the bytes of the weights' file and of the cache of keys and values, which may grow."""
        used = self._weights + self.engine.cache_bytes() if self._weights else 0
        on_gpu = self._weights and self.engine.device.startswith("GPU")
        return (core.MemoryUsage("GPU" if on_gpu else "CPU", 0, used),)


backend = engine_backend(GenAiModel, known_parameters=PARAMETERS)
