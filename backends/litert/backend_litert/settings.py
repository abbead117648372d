"""Settings for LiteRT: the parameters in config.pbtxt."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from core.config import ModelConfig
from core.errors import CoreError, invalid

PARAMETERS = (
    "threads",
    "signature",
    "xnnpack",
    "float_tensors",
    "resize_rows",
    "keep_variables",
    "delegate",
    "delegate_options",
)
_MOST = max(1024, os.cpu_count() or 0)


@dataclass(frozen=True)
class Settings:
    """The settings of one model.

    threads            of one execution; 0 for as many as the instance has cores, at most 4
    signature          key of the signature that runs; "" for the only one, or serving_default
    xnnpack            use LiteRT's kernels for vectors of the processor
    float_tensors      clients send and get FP32 in place of quantised tensors
    resize_rows        give a file with one row as many rows as the batch has, instead of a run for each
    keep_variables     accept a file whose variables keep their values from one request to the next
    delegate           path of a library that runs operators; "" for none
    delegate_options   options of that library
    """

    threads: int = 0
    signature: str = ""
    xnnpack: bool = True
    float_tensors: bool = False
    resize_rows: bool = False
    keep_variables: bool = False
    delegate: str = ""
    delegate_options: dict[str, str] = field(default_factory=dict)


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    values = {name: entry.string_value for name, entry in config.parameters.items()}
    return Settings(
        threads=_threads(config.name, values.get("threads", "")),
        signature=values.get("signature", ""),
        xnnpack=_flag(config.name, values, "xnnpack", True),
        float_tensors=_flag(config.name, values, "float_tensors", False),
        resize_rows=_flag(config.name, values, "resize_rows", False),
        keep_variables=_flag(config.name, values, "keep_variables", False),
        delegate=values.get("delegate", ""),
        delegate_options=_options(config.name, values.get("delegate_options", "")),
    )


def _threads(model: str, text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= _MOST):
        raise _wrong(model, "threads", f"a whole number from 1 to {_MOST}", text)
    return int(text)


def _flag(model: str, values: dict[str, str], name: str, default: bool) -> bool:
    text = values.get(name, "")
    if text.lower() not in ("", "true", "false"):
        raise _wrong(model, name, "true or false", text)
    return text.lower() == "true" if text else default


def _options(model: str, text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _wrong(model, "delegate_options", 'JSON such as {"name": "value"}', text)
    return {str(name): str(value) for name, value in found.items()}


def _wrong(model: str, name: str, expected: str, found: str) -> CoreError:
    return invalid(
        f"model '{model}': expected the parameter '{name}' to be {expected}, got {found}; change it in "
        "config.pbtxt"
    )
