"""The backend `letters`: its parameters, and the model around the engine."""

from __future__ import annotations

from pathlib import Path

from core_generate import Description, EngineModel, engine_backend

import core
from backend_testing.letters.engine import Letters
from core.config import ModelConfig
from core.errors import invalid

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
PARAMETERS = ("adapters", "context", "delay_ms", "most", "task", "template", "text")


class LettersModel(EngineModel):
    """A model without files that runs Letters, with the settings in the parameters of its configuration."""

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        adapters = _text(config, "adapters", "")
        return Description(
            task=_text(config, "task", "generate"),
            context=_whole(config, "context", 4096),
            template=_text(config, "template", TEMPLATE),
            bos="<s>",
            eos="</s>",
            supports=Letters.supports,
            adapters=tuple(adapters.split(",")) if adapters else (),
        )

    def make_engine(self) -> Letters:
        return Letters(
            text=_text(self.config, "text", ""),
            context=self.description.context,
            most=_whole(self.config, "most", 256),
            delay_s=_whole(self.config, "delay_ms", 0) / 1000,
            adapters=self.description.adapters,
        )


letters = engine_backend(LettersModel, known_parameters=PARAMETERS, known_settings=())


def _text(config: ModelConfig, name: str, default: str) -> str:
    return config.parameters[name].string_value if name in config.parameters else default


def _whole(config: ModelConfig, name: str, default: int) -> int:
    text = _text(config, name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid(
            f"model '{config.name}': parameter '{name}' is '{text}', it must be a whole number"
        )
    return int(text)
