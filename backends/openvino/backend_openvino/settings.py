"""Settings for OpenVINO in config.pbtxt.

ModelConfig ─► [settings] ─► backend.  Names and values are those of Triton's OpenVINO backend.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from core.config import ModelConfig
from core.errors import CoreError, invalid

_PRECISIONS = ("f32", "f16", "bf16")
_HINTS = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")
_NUMBERS = ("INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS")
PARAMETERS = (
    "TARGET_DEVICE",
    "CPU_EXTENSION_PATH",
    "SKIP_OV_DYNAMIC_BATCHSIZE",
    "ENABLE_BATCH_PADDING",
    "RESHAPE_IO_LAYERS",
    "HINT_BF16",
    "INFERENCE_PRECISION_HINT",
    "NUM_STREAMS",
    "PERFORMANCE_HINT",
    *_NUMBERS,
)
_MOST = max(1024, os.cpu_count() or 0)  # threads or streams
_OWN_STREAMS = ("AUTO", "NUMA")


@dataclass(frozen=True)
class Settings:
    """The settings in one model's `parameters`.

    device        an OpenVINO device: "CPU", "GPU", "AUTO", "HETERO:GPU,CPU", …
    extension     path of a library of custom operators, "" for none
    fixed_batch   compile the model for exactly max_batch_size rows
    pads          fill smaller batches up with zeros, if the model takes a fixed number of rows
    reshapes      the dims of the configuration replace those of the file
    properties    of the compiled model: OpenVINO's name → value
    """

    device: str = "CPU"
    extension: str = ""
    fixed_batch: bool = False
    pads: bool = False
    reshapes: bool = False
    properties: dict[str, Any] = field(default_factory=dict)


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    values = {name: entry.string_value for name, entry in config.parameters.items()}
    return Settings(
        device=values.get("TARGET_DEVICE", "").upper() or "CPU",
        extension=values.get("CPU_EXTENSION_PATH", ""),
        fixed_batch=_yes(values, "SKIP_OV_DYNAMIC_BATCHSIZE"),
        pads=_yes(values, "ENABLE_BATCH_PADDING"),
        reshapes=_yes(values, "RESHAPE_IO_LAYERS"),
        properties=_properties(values, config.name),
    )


def _yes(values: dict[str, str], name: str) -> bool:
    return values.get(name, "").lower() == "yes"


def _properties(values: dict[str, str], model: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _NUMBERS:
        if text := values.get(name):
            found[name] = _number(text, model, name, "a non-negative number")
    if text := values.get("HINT_BF16"):
        if text.upper() != "YES":
            raise _wrong(model, "HINT_BF16", "YES", text)
        found["INFERENCE_PRECISION_HINT"] = "bf16"
    if text := values.get("INFERENCE_PRECISION_HINT"):
        if text.lower() not in _PRECISIONS:
            raise _wrong(model, "INFERENCE_PRECISION_HINT", "/".join(_PRECISIONS), text)
        found["INFERENCE_PRECISION_HINT"] = text.lower()
    if text := values.get("NUM_STREAMS"):
        if text.upper() not in _OWN_STREAMS:
            _number(text, model, "NUM_STREAMS", "either AUTO/NUMA/<int_value>")
        found["NUM_STREAMS"] = text.upper()
    if text := values.get("PERFORMANCE_HINT"):
        if text.upper() not in _HINTS:
            raise _wrong(model, "PERFORMANCE_HINT", "/".join(_HINTS), text)
        found["PERFORMANCE_HINT"] = text.upper()
    return found


def _number(text: str, model: str, name: str, expected: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _wrong(model, name, expected, text)
    if len(text) > 18 or int(text) > _MOST:
        raise _wrong(model, name, f"{_MOST} or less", text)
    return int(text)


def _wrong(model: str, name: str, expected: str, found: str) -> CoreError:
    return invalid(
        f"model '{model}': expected the parameter '{name}' to be {expected}, got {found}; change it "
        "in config.pbtxt"
    )
