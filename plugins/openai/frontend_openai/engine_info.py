"""EngineInfo: what the configuration of a model says about its text."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import orjson

from core.config import ModelConfig

logger = logging.getLogger("core")

ENGINE = "engine"  # parameter of models with the tensors of our engines
GENERATE = "generate"


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Facts about a model, from the parameters of its configuration.

    is_engine   whether the parameter `engine` is there: the model has the tensors of our engines
    task        "generate", "embed" or "rank"
    context     tokens of prompt and generation together; 0 if unknown
    template    chat template in Jinja; "" for none
    bos, eos    texts of the tokens that begin and end a text
    supports    names of what it can do; None if unknown
    adapters    names of its LoRA adapters; None if unknown
    marker      text that stands for an image in a prompt; "": the chat template itself writes one
    levels      priority levels of its queue, 0 for none
    """

    is_engine: bool = False
    task: str = GENERATE
    context: int = 0
    template: str = ""
    bos: str = ""
    eos: str = ""
    supports: frozenset[str] | None = None
    adapters: tuple[str, ...] | None = None
    marker: str = ""
    levels: int = 0


def info_of(config: ModelConfig) -> EngineInfo:
    """Return the facts of a completed configuration. An unreadable parameter `engine` counts as absent.

    A user may write the parameters chat_template, bos_token, eos_token, and `supports`: names of fields,
    separated by blanks or commas.
    """
    written = {name: value.string_value for name, value in config.parameters.items()}
    template = written.get("chat_template", "")
    levels = config.dynamic_batching.priority_levels
    if ENGINE in written:
        try:
            return _of_engine(orjson.loads(written[ENGINE]), template, levels)
        except (ValueError, TypeError, AttributeError) as error:
            logger.warning("model '%s': parameter 'engine' is unreadable: %s", config.name, error)
    supports = written.get("supports")
    return EngineInfo(
        template=template,
        bos=written.get("bos_token", ""),
        eos=written.get("eos_token", ""),
        supports=None if supports is None else frozenset(supports.replace(",", " ").split()),
        levels=levels,
    )


def _of_engine(found: dict[str, object], template: str, levels: int) -> EngineInfo:
    def texts(name: str) -> list[str]:
        value = found.get(name) or []
        if not isinstance(value, list):
            raise TypeError(f"'{name}' is no list")
        return [str(each) for each in value]

    context = found.get("context")
    return EngineInfo(
        is_engine=True,
        task=str(found.get("task") or GENERATE),
        context=context if isinstance(context, int) else 0,
        template=template or str(found.get("template") or ""),
        bos=str(found.get("bos") or ""),
        eos=str(found.get("eos") or ""),
        supports=frozenset(texts("supports")),
        adapters=tuple(texts("adapters")),
        marker=str(found.get("marker") or ""),
        levels=levels,
    )
