"""Model and backend: folders of Hugging Face, run by transformers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_generate import Description, EngineModel
from core_generate.tensors import PARAMETER, write_configuration

import core
from backend_transformers.classes import ClassInstance, write_classes
from backend_transformers.folder import Folder
from backend_transformers.settings import PARAMETERS, description_of, settings_of
from core.config import ModelConfig

if TYPE_CHECKING:
    from backend_transformers.engine import TextEngine
    from backend_transformers.images import ImageEngine
    from backend_transformers.scoring import ScoringEngine
    from backend_transformers.speech import SpeechEngine


class TransformersModel(EngineModel):
    """A model version, made from a folder with config.json, weights in safetensors and a tokenizer.

    A model of images has an image processor in the place of the tokenizer.
    """

    _device: tuple[str, int] = "CPU", 0

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        folder = Folder(path, config.name)
        return description_of(settings_of(config, folder), folder)

    def make_engine(self) -> TextEngine | ScoringEngine | SpeechEngine | ImageEngine:
        # They import torch and transformers, which takes seconds.
        from backend_transformers.engine import TextEngine
        from backend_transformers.images import ImageEngine
        from backend_transformers.loading import load, load_images
        from backend_transformers.scoring import ScoringEngine
        from backend_transformers.speech import SpeechEngine

        folder = Folder(self.path, self.config.name)
        settings = settings_of(self.config, folder)
        if settings.images:
            images = load_images(folder, settings)
            self._note_device(images.module.device)
            return ImageEngine(images, settings)
        loaded = load(folder, settings)
        self._note_device(loaded.module.device)
        if settings.task == "generate":
            return TextEngine(loaded, settings)
        if settings.task == "transcribe":
            return SpeechEngine(loaded, settings, folder)
        return ScoringEngine(loaded, settings)

    def _note_device(self, device: Any) -> None:
        self._device = ("GPU" if device.type == "cuda" else "CPU", device.index or 0)

    def memory_usage(self) -> Iterable[core.MemoryUsage]:
        """Return the bytes of the weights, and of the keys and values of the running generations."""
        kind, number = self._device
        engine = getattr(self, "engine", None)
        return () if engine is None else (core.MemoryUsage(kind, number, engine.bytes),)


def complete(config: ModelConfig, path: Path, backend: core.Backend) -> None:
    """Write the tensors of the model's task into its configuration."""
    folder = Folder(path, config.name)
    settings = settings_of(config, folder)
    if settings.task == "classify":
        write_classes(config, "image" if settings.images else "text_input", len(settings.labels))
    else:
        write_configuration(config, description_of(settings, folder))


backend = core.Backend(
    model=TransformersModel,
    instance=ClassInstance,
    complete=complete,
    instances={"MODEL": 1},
    known_parameters=[*PARAMETERS, PARAMETER],
    known_settings=(),
)
