"""Models of text, speech, embeddings and scores: the contract of their engines, and what they share.

    import core_generate as generate

    class Gguf(generate.EngineModel):
        @classmethod
        def describe(cls, config, path, backend):
            return generate.Description(context=4096, supports=Llama.supports)

        def make_engine(self):
            return Llama(self.file("model.gguf"))

    backend = generate.engine_backend(Gguf)

Each name is imported when it is first used: a server without such models does not import their code.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_generate.engine import (
        Emit,
        Engine,
        Event,
        Generation,
        Logprob,
        Prompt,
        Sampling,
        Segment,
        Speech,
        Status,
        Structure,
        Transcript,
    )
    from core_generate.errors import PromptTooLong, StructureRefused
    from core_generate.gathering import Gathering
    from core_generate.instance import EngineInstance
    from core_generate.model import EngineModel, engine_backend
    from core_generate.stop_strings import StopStrings
    from core_generate.tensors import Description
    from core_generate.token_text import TokenText

__all__ = [
    "Description",
    "Emit",
    "Engine",
    "EngineInstance",
    "EngineModel",
    "Event",
    "Gathering",
    "Generation",
    "Logprob",
    "Prompt",
    "PromptTooLong",
    "Sampling",
    "Segment",
    "Speech",
    "Status",
    "StopStrings",
    "Structure",
    "StructureRefused",
    "TokenText",
    "Transcript",
    "engine_backend",
]

_MODULES = {
    "Description": "tensors",
    "EngineInstance": "instance",
    "EngineModel": "model",
    "Gathering": "gathering",
    "PromptTooLong": "errors",
    "StopStrings": "stop_strings",
    "StructureRefused": "errors",
    "TokenText": "token_text",
    "engine_backend": "model",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import and return what a name of __all__ stands for. Raises AttributeError for other names."""
        if name not in __all__:
            raise AttributeError(f"module 'core_generate' has no attribute '{name}'")
        module = import_module(f"core_generate.{_MODULES.get(name, 'engine')}")
        found = globals()[name] = getattr(module, name)
        return found
