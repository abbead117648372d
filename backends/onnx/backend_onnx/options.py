"""Session and run options from config.pbtxt.

ModelConfig ─► [options] ─► session.  Names and values are those of Triton's ONNX Runtime backend.
A parameter with a dot in its name goes to ONNX Runtime as a session configuration entry.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from core.config import ModelConfig
from core.errors import CoreError, Kind, invalid
from core.system import platform

ARENA_SHRINKAGE = "memory.enable_memory_arena_shrinkage"
SHARE_SESSION = "share_session"
GLOBAL_THREADS = "enable-global-threadpool"
THREAD_COUNTS = ("intra_op_thread_count", "inter_op_thread_count")
PARAMETERS = (
    *THREAD_COUNTS,
    "execution_mode",
    "enable_mem_arena",
    "enable_mem_pattern",
    ARENA_SHRINKAGE,
    SHARE_SESSION,
    "*.*",  # for ONNX Runtime
)

_NONE_BUT_FATAL = 4  # errors come back as exceptions, so a log line would repeat them

_GRAPH_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
_EXECUTION_MODES = {
    0: ort.ExecutionMode.ORT_SEQUENTIAL,
    1: ort.ExecutionMode.ORT_PARALLEL,
}
_TRUTHS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_DEVICES = re.compile(r"((cpu|gpu):[0-9]+)(;(cpu|gpu):[0-9]+)*;?")
# ONNX Runtime starts any number of threads; several thousand of them block each other forever.
MOST_THREADS = max(1024, os.cpu_count() or 0)


class Parameters:
    """The `parameters` of one model, read with errors that name model, parameter and value."""

    def __init__(self, config: ModelConfig):
        self._model = config.name
        self.values = {name: entry.string_value for name, entry in config.parameters.items()}

    def boolean(self, name: str, default: bool) -> bool:
        """Return the value of 0, 1, true, false, on or off; `default` if the parameter is not set.

        Raises CoreError(INVALID) for other text.
        """
        text = self.values.get(name)
        if text is None:
            return default
        if (value := truth(text)) is None:
            raise self._wrong(name, text, "0 or 1 (or false, true, off, on)")
        return value

    def number(self, name: str, default: int) -> int:
        """Return the whole number in a parameter, with any sign; `default` if the parameter is not set.

        Raises CoreError(INVALID) for other text.
        """
        text = self.values.get(name)
        if text is None:
            return default
        if not _WHOLE_NUMBER.fullmatch(text.strip()):
            raise self._wrong(name, text, "a whole number")
        return int(text)

    def threads(self, name: str) -> int:
        """Return a number of threads, 0 for the default. Raises CoreError(INVALID) for an invalid number."""
        text = self.values.get(name, "0")
        if (count := threads_of(text)) is None:
            raise self._wrong(name, text, f"a whole number up to {MOST_THREADS}")
        return count

    def devices(self, name: str) -> str:
        """Return devices such as "cpu:0;gpu:0"; "" for none. Raises CoreError(INVALID) for other text."""
        text = self.values.get(name, "").strip()
        if text and not _DEVICES.fullmatch(text):
            raise self._wrong(name, text, "devices such as cpu:0;gpu:0")
        return text

    def one_of(self, name: str, choices: Mapping[int, Any], default: int) -> Any:
        """Return the entry of `choices` for the parameter's number, or for `default` if it is not set.

        Raises CoreError(INVALID) if there is no such entry.
        """
        number = self.number(name, default)
        if number not in choices:
            raise self._wrong(name, str(number), " or ".join(map(str, choices)))
        return choices[number]

    def _wrong(self, name: str, found: str, expected: str) -> CoreError:
        return invalid(
            f"model '{self._model}': parameter '{name}' is '{found}', it must be {expected}; "
            "change it in config.pbtxt"
        )


def truth(text: str) -> bool | None:
    """Return the boolean that Triton reads from a text; None for other text."""
    return _TRUTHS.get(text.strip().lower())


def threads_of(text: str) -> int | None:
    """Return the number of threads in a text; 0 (the default) for 0 and negative numbers.

    Returns None for text that is not a whole number, and for more than MOST_THREADS.
    """
    if not _WHOLE_NUMBER.fullmatch(text.strip()) or int(text) > MOST_THREADS:
        return None
    return max(0, int(text))


def shares_threads(settings: Mapping[str, str]) -> bool:
    """Return whether --backend-config sets one pool of threads for all sessions of the process.

    Raises CoreError(INVALID) if the value is not a boolean.
    """
    text = settings.get(GLOBAL_THREADS, "0")
    if (value := truth(text)) is None:
        raise invalid(
            f"--backend-config=onnxruntime,{GLOBAL_THREADS}={text}: it must be 0 or 1 (or false, true)"
        )
    return value


def session_options(
    config: ModelConfig, directory: Path, *, global_threads: bool, cores: int = 0
) -> Any:
    """Return the onnxruntime.SessionOptions of a configuration.

    directory        folder of the version; libraries of custom operators are searched there first
    global_threads   whether sessions use the threads of the process instead of their own
    cores            number of cores to which the session's threads are bound, 0 for all
    Raises CoreError(INVALID) for an invalid value, and for a library that cannot be loaded.
    """
    parameters = Parameters(config)
    options = ort.SessionOptions()
    options.logid = config.name
    options.log_severity_level = _NONE_BUT_FATAL
    options.graph_optimization_level = _GRAPH_LEVELS.get(
        config.optimization.graph.level, ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    if global_threads:
        options.use_per_session_threads = False
    else:
        options.intra_op_num_threads = (
            parameters.threads("intra_op_thread_count") or cores or threads_by_default()
        )
        options.inter_op_num_threads = (
            parameters.threads("inter_op_thread_count") or cores or threads_by_default()
        )
    options.execution_mode = parameters.one_of("execution_mode", _EXECUTION_MODES, 0)
    options.enable_cpu_mem_arena = parameters.boolean("enable_mem_arena", True)
    options.enable_mem_pattern = parameters.boolean("enable_mem_pattern", True)
    for name, value in parameters.values.items():
        if "." in name and name != ARENA_SHRINKAGE:
            _add_entry(options, name, value, config.name)
    for filename in config.model_operations.op_library_filename:
        _add_operators(options, filename, directory, config.name)
    return options


def threads_by_default() -> int:
    """Return the default number of threads of one run; 0 leaves the choice to ONNX Runtime.

    ONNX Runtime starts one thread per core of the machine, even if the process may use only some cores
    (taskset, cpuset). The surplus threads would spin on the cores of working threads.
    """
    allowed = len(platform.cores())
    return allowed if allowed < (os.cpu_count() or 0) else 0


def run_options(config: ModelConfig) -> Any:
    """Return new onnxruntime.RunOptions with the arena shrinkage of the configuration.

    Each instance needs its own: it ends its runs by setting `terminate`.

    Raises CoreError(INVALID) for an invalid value.
    """
    options = ort.RunOptions()
    if places := Parameters(config).devices(ARENA_SHRINKAGE):
        options.add_run_config_entry(ARENA_SHRINKAGE, places)
    return options


def _add_entry(options: Any, name: str, value: str, model: str) -> None:
    try:
        options.add_session_config_entry(name, value)
    except Exception as error:
        raise invalid(
            f"model '{model}': ONNX Runtime refuses the parameter '{name}' with value '{value}': "
            f"{error}"
        ) from error


def _add_operators(options: Any, filename: str, directory: Path, model: str) -> None:
    """Load a library of custom operators into `options`.

    The file is looked for in the version's folder `directory`, then in the model's; if neither has it,
    `filename` is a path. Raises CoreError(INVALID) if it cannot be loaded.
    """
    places = [directory / filename, directory.parent / filename]
    path = next((each for each in places if each.is_file()), Path(filename))
    try:
        options.register_custom_ops_library(str(path))
    except Exception as error:
        raise CoreError(
            Kind.INVALID,
            f"model '{model}': the operator library '{filename}' of model_operations cannot be "
            f"loaded: {error}; give an absolute path, or one from the folder of the model or version",
        ) from error
