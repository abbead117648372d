"""Settings for Paddle: the parameters and accelerators in config.pbtxt.

Parameters have the names of PaddleOCR's options, accelerators those of Triton's backend for Paddle. Where
both say something, the parameters count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from core.completion import MAX_BATCH_SIZE
from core.config import ModelConfig
from core.errors import CoreError, invalid, unsupported

_THREADS, _ONEDNN, _CACHE = "cpu_threads", "enable_mkldnn", "mkldnn_cache_capacity"
PARAMETERS = (_THREADS, _ONEDNN, _CACHE)
KEYS = (MAX_BATCH_SIZE,)

_MOST_THREADS = max(1024, os.cpu_count() or 0)
_MOST_SHAPES = 1_000_000
_TRUE, _FALSE = ("true", "on", "1"), ("false", "off", "0")
# Of the accelerator `mkldnn`: its key → our parameter. use_int8 has no effect in Triton either.
_ACCELERATOR_KEYS = {_THREADS: _THREADS, "capacity": _CACHE, "use_int8": ""}


@dataclass(frozen=True)
class Settings:
    """The settings of one model.

    threads        of one execution; 0 for as many as the instance has cores, at most 4
    onednn         use the kernels of oneDNN, which was MKL-DNN
    onednn_cache   shapes for which oneDNN keeps its kernels
    optimize       let Paddle rewrite the program before it runs
    """

    threads: int = 0
    onednn: bool = False
    onednn_cache: int = 10
    optimize: bool = True


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings of a model.

    Raises CoreError: INVALID for an invalid value, UNSUPPORTED for an accelerator that packages of Paddle
    lack.
    """
    values = _of_accelerators(config)
    values |= {name: entry.string_value for name, entry in config.parameters.items()}
    found = _Reader(config.name, values)
    return Settings(
        threads=found.number(_THREADS, 0, _MOST_THREADS),
        onednn=found.flag(_ONEDNN, Settings.onednn),
        onednn_cache=found.number(_CACHE, Settings.onednn_cache, _MOST_SHAPES),
        optimize=config.optimization.graph.level >= 0,
    )


def _of_accelerators(config: ModelConfig) -> dict[str, str]:
    """Return the parameters that the accelerators of a configuration stand for."""
    accelerators = config.optimization.execution_accelerators
    for each in accelerators.gpu_execution_accelerator:
        raise unsupported(
            f"model '{config.name}': the accelerator '{each.name}' needs a build of Paddle with TensorRT, "
            "which no package of it has; remove it from config.pbtxt, or convert the model to ONNX for the "
            "backend 'onnxruntime' or 'tensorrt'"
        )
    found: dict[str, str] = {}
    for each in accelerators.cpu_execution_accelerator:
        if each.name == "ort":
            raise unsupported(
                f"model '{config.name}': the accelerator 'ort' needs a build of Paddle with ONNX Runtime, "
                "which no package of it has; remove it from config.pbtxt, or convert the model to ONNX for "
                "the backend 'onnxruntime'"
            )
        if each.name not in ("", "mkldnn"):
            raise invalid(
                f"model '{config.name}': there is no accelerator '{each.name}' for Paddle on CPUs; there is "
                "mkldnn; change config.pbtxt"
            )
        if each.name:
            found[_ONEDNN] = "true"
        for key, value in each.parameters.items():
            if key not in _ACCELERATOR_KEYS:
                raise invalid(
                    f"model '{config.name}': the accelerator 'mkldnn' has no parameter '{key}'; it has "
                    f"{', '.join(_ACCELERATOR_KEYS)}; change config.pbtxt"
                )
            found[_ACCELERATOR_KEYS[key]] = value
    return found


class _Reader:
    """Reads values of one model's parameters."""

    def __init__(self, model: str, values: Mapping[str, str]):
        self._model, self._values = model, values

    def number(self, name: str, default: int, most: int) -> int:
        text = self._values.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= most):
            raise self._wrong(name, f"a whole number from 1 to {most}")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        text = self._values.get(name, "").lower()
        if text and text not in _TRUE + _FALSE:
            raise self._wrong(name, "true or false")
        return text in _TRUE if text else default

    def _wrong(self, name: str, expected: str) -> CoreError:
        return invalid(
            f"model '{self._model}': expected '{name}' to be {expected}, got {self._values[name]}; change it "
            "in config.pbtxt"
        )
