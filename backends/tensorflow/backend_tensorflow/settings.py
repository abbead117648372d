"""Settings for TensorFlow: the parameters in config.pbtxt, and the keys of --backend-config.

Names and meanings are those of Triton's TensorFlow backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.completion import MAX_BATCH_SIZE
from core.config import ModelConfig
from core.errors import CoreError, invalid

_SHARES = "MAX_SESSION_SHARE_COUNT"
METHOD = "TF_METHOD_NAME"
PREDICT = "tensorflow/serving/predict"
"""The method of a signature whose configuration does not have the parameter METHOD."""

PARAMETERS = (
    METHOD,
    "TF_GRAPH_TAG",
    "TF_SIGNATURE_DEF",
    "TF_NUM_INTRA_THREADS",
    "TF_NUM_INTER_THREADS",
    "TF_USE_PER_SESSION_THREADS",
    "TF_INIT_OPS_FILE",
    _SHARES,
    f"TF_{_SHARES}",
)
_SOFT, _FRACTION, _VERSION = "allow-soft-placement", "gpu-memory-fraction", "version"
KEYS = (_SOFT, _FRACTION, _VERSION, MAX_BATCH_SIZE)

INIT_OPS_FILE = "init_ops.json"
_MOST_THREADS = 4096
_TRUE, _FALSE = ("true", "on", "1"), ("false", "off", "0", "")


@dataclass(frozen=True)
class Settings:
    """The settings of one model.

    tags             of the graph in a SavedModel; () for "serve", or those of the only graph
    signature        of the graph; "" for serving_default, or the only one
    intra_threads    of one operator; 0: TensorFlow chooses
    inter_threads    operators that run at once; 0: TensorFlow chooses
    own_threads      whether each session has threads of its own for inter_threads
    init_ops_file    in the folder of a version, with operators that run before the first request
    sharing          instances that share a session; 0 for all of a device
    """

    tags: tuple[str, ...] = ()
    signature: str = ""
    intra_threads: int = 0
    inter_threads: int = 0
    own_threads: bool = False
    init_ops_file: str = ""
    sharing: int = 0


@dataclass(frozen=True)
class ServerSettings:
    """The settings of all models.

    soft_placement    whether operators that a GPU does not have run on the CPU
    memory_fraction   of a GPU that is taken at once; 0: memory is taken when it is needed
    """

    soft_placement: bool = True
    memory_fraction: float = 0.0


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    values = {name: entry.string_value for name, entry in config.parameters.items()}
    found = _Reader(config.name, values)
    inter = found.number("TF_NUM_INTER_THREADS")
    # Without threads of its own, a session has the number of the first session of the process.
    own = found.flag("TF_USE_PER_SESSION_THREADS", bool(inter))
    tags = tuple(each.strip() for each in values.get("TF_GRAPH_TAG", "").split(",") if each.strip())
    return Settings(
        tags=tags,
        signature=values.get("TF_SIGNATURE_DEF", ""),
        intra_threads=found.number("TF_NUM_INTRA_THREADS"),
        inter_threads=inter,
        own_threads=own,
        init_ops_file=found.file_name("TF_INIT_OPS_FILE"),
        sharing=found.number(_SHARES) or found.number(f"TF_{_SHARES}"),
    )


def server_settings_of(given: Mapping[str, str]) -> ServerSettings:
    """Return the settings of --backend-config=tensorflow,…. Raises CoreError(INVALID) for an invalid one."""
    soft, fraction = given.get(_SOFT, "true"), given.get(_FRACTION, "0")
    if soft.lower() not in _TRUE + _FALSE:
        raise _wrong_key(_SOFT, soft, "true or false")
    try:
        share = float(fraction)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise _wrong_key(_FRACTION, fraction, "a number from 0 to 1")
    if (version := given.get(_VERSION, "2")) != "2":
        raise _wrong_key(
            _VERSION, version, "2: this backend has no TensorFlow 1, but runs its models"
        )
    return ServerSettings(soft.lower() in _TRUE, share)


class _Reader:
    """Reads values of one model's parameters."""

    def __init__(self, model: str, values: Mapping[str, str]):
        self._model, self._values = model, values

    def number(self, name: str) -> int:
        text = self._values.get(name, "")
        if not text:
            return 0
        if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= _MOST_THREADS):
            raise self._wrong(name, f"a whole number from 0 to {_MOST_THREADS}")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        text = self._values.get(name, "").lower()
        if text not in _TRUE + _FALSE:
            raise self._wrong(name, "true or false")
        return text in _TRUE if text else default

    def file_name(self, name: str) -> str:
        text = self._values.get(name, "")
        if text in (".", "..") or "/" in text or "\\" in text:
            raise self._wrong(name, "the name of a file in the folder of the version")
        return text

    def _wrong(self, name: str, expected: str) -> CoreError:
        return invalid(
            f"model '{self._model}': expected the parameter '{name}' to be {expected}, got "
            f"{self._values[name]}; change it in config.pbtxt"
        )


def _wrong_key(key: str, value: str, expected: str) -> CoreError:
    return invalid(f"--backend-config=tensorflow,{key}={value}: expected {expected}")
