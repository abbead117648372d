"""The parameters of a model, with current and removed names.

config.pbtxt ─► [settings] ─► model.  Names, values and warnings are those of NVIDIA's FIL backend.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.config import ModelConfig
from core.errors import CoreError, invalid

logger = logging.getLogger("core")

LAYOUTS = ("depth_first", "breadth_first", "layered")
LARGEST_CHUNK = 32

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_KNOWN = (
    "model_type",
    "is_classifier",
    "predict_proba",
    "threshold",
    "xgboost_allow_unknown_field",
    "layout",
    "chunk_size",
    "transfer_threshold",
    "cpu_nthread",
    "use_experimental_optimizations",
)
# Names until release 25.08 → the current name, None if there is no replacement.
_REMOVED = {
    "output_class": "is_classifier",
    "algo": "layout",
    "threads_per_tree": "chunk_size",
    "storage_type": None,
    "blocks_per_sm": None,
}
PARAMETERS = (*_KNOWN, *_REMOVED)


@dataclass(frozen=True)
class Settings:
    """The parameters of one model. None: the file decides.

    threshold       a binary classifier returns 1 above it
    threads         threads of one batch on the CPU, 0 for the default
    layout, chunk_size, transfer_threshold
                    for GPUs: order of nodes; rows per block of threads (0: the library chooses); a batch with
                    more rows than transfer_threshold runs on the GPU, else on the CPU
    """

    model_type: str | None
    is_classifier: bool | None
    predict_proba: bool
    threshold: float
    allow_unknown_field: bool
    layout: str
    chunk_size: int
    transfer_threshold: int
    threads: int


def settings_of(config: ModelConfig) -> Settings:
    """Return the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    read = _Parameters(config)
    read.boolean("use_experimental_optimizations", False)  # checked, but without effect here
    classifies: bool | None = None
    for name in ("is_classifier", "output_class"):
        if name in read.values and classifies is None:
            classifies = read.boolean(name, False)
    chunk_size = read.number("chunk_size", 0)
    if chunk_size > LARGEST_CHUNK or chunk_size & (chunk_size - 1):
        raise read.wrong("chunk_size", f"a power of two up to {LARGEST_CHUNK}")
    return Settings(
        model_type=read.values.get("model_type"),
        is_classifier=classifies,
        predict_proba=read.boolean("predict_proba", False),
        threshold=read.real("threshold", 0.5),
        allow_unknown_field=read.boolean("xgboost_allow_unknown_field", False),
        layout=read.one_of("layout", LAYOUTS),
        chunk_size=chunk_size,
        transfer_threshold=read.number("transfer_threshold", 0),
        threads=max(0, read.number("cpu_nthread", -1, least=-1)),
    )


def warn(config: ModelConfig) -> None:
    """Log a warning for each removed parameter."""
    for name in config.parameters:
        if name in _REMOVED:
            advice = f"Use `{_REMOVED[name]}` instead." if _REMOVED[name] else "It has no effect."
            logger.warning(
                "model '%s': The `%s` parameter has been removed in 25.09 release. %s",
                config.name,
                name,
                advice,
            )


class _Parameters:
    """Read one model's parameters. Errors name the model, the parameter and the value."""

    def __init__(self, config: ModelConfig):
        self._model = config.name
        self.values: Mapping[str, str] = {
            name: entry.string_value.strip() for name, entry in config.parameters.items()
        }

    def boolean(self, name: str, default: bool) -> bool:
        if name not in self.values:
            return default
        if (value := _TRUTHS.get(self.values[name].lower())) is None:
            raise self.wrong(name, "true or false")
        return value

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        if name not in self.values:
            return default
        try:
            value = int(self.values[name])
        except ValueError:
            value = least - 1
        if value < least:
            raise self.wrong(name, f"a whole number, {least} or larger")
        return value

    def real(self, name: str, default: float) -> float:
        try:
            value = float(self.values.get(name, default))
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise self.wrong(name, "a number")
        return value

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.values.get(name, choices[0])
        if value not in choices:
            raise self.wrong(name, " or ".join(choices))
        return value

    def wrong(self, name: str, expected: str) -> CoreError:
        return invalid(
            f"model '{self._model}': parameter '{name}' is '{self.values[name]}', it must be "
            f"{expected}; change it in config.pbtxt"
        )
