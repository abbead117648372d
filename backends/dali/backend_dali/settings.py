"""Settings for DALI: the parameters in config.pbtxt, and the keys of --backend-config. Names are Triton's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from core.config import ModelConfig
from core.errors import CoreError, invalid

_THREADS, _SPLIT = "num_threads", "split_along_outer_axis"
PARAMETERS = (_THREADS, _SPLIT)
RELEASE = "release_after_unload"
KEYS = (RELEASE,)

_MOST_THREADS = max(1024, os.cpu_count() or 0)


@dataclass(frozen=True)
class Settings:
    """The settings of one model.

    threads   of the pipeline of an instance; 0 for as many as the pipeline says
    split     outputs whose samples lose their outer dimension: its elements become rows
    """

    threads: int = 0
    split: tuple[str, ...] = ()


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    values = {name: entry.string_value for name, entry in config.parameters.items()}
    return Settings(
        threads=_threads(config.name, values.get(_THREADS, "")),
        split=_split(config.name, values.get(_SPLIT, "")),
    )


def releases(backend_config: Mapping[str, str]) -> bool:
    """Return whether memory is given back after each unload. Raises CoreError(INVALID) for another word."""
    text = backend_config.get(RELEASE, "false").lower()
    if text not in ("true", "false"):
        raise invalid(f"--backend-config=dali,{RELEASE}={text}: it must be true or false")
    return text == "true"


def _threads(model: str, text: str) -> int:
    if not text:
        return 0
    if not (
        text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= _MOST_THREADS
    ):
        raise _wrong(model, _THREADS, f"a whole number from 1 to {_MOST_THREADS}", text)
    return int(text)


def _split(model: str, text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(":")) if text else ()
    if "" in names or len(set(names)) < len(names):
        raise _wrong(model, _SPLIT, "different names of outputs with colons between them", text)
    return names


def _wrong(model: str, name: str, expected: str, found: str) -> CoreError:
    return invalid(
        f"model '{model}': expected the parameter '{name}' to be {expected}, got {found}; change it in "
        "config.pbtxt"
    )
