"""Session and run options from config.pbtxt.

ModelConfig ─► [options] ─► session.  Names and values are those of Triton's ONNX Runtime backend;
a parameter with a dot in its name is passed on to ONNX Runtime as a session configuration entry.
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

_NONE_BUT_FATAL = 4  # what goes wrong comes back as an exception, so a log line would be its double

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
# ONNX Runtime starts what it is told; some thousands wait for each other for good.
MOST_THREADS = max(1024, os.cpu_count() or 0)


class Parameters:
    """The `parameters` of one model, read with errors that name model, parameter and value."""

    def __init__(self, config: ModelConfig):
        self._model = config.name
        self.values = {name: entry.string_value for name, entry in config.parameters.items()}

    def boolean(self, name: str, default: bool) -> bool:
        """0, 1, true, false, on or off. Raises CoreError(INVALID) for anything else."""
        text = self.values.get(name)
        if text is None:
            return default
        if (value := truth(text)) is None:
            raise self._wrong(name, text, "0 or 1 (or false, true, off, on)")
        return value

    def number(self, name: str, default: int) -> int:
        """A whole number. Raises CoreError(INVALID) for anything else."""
        text = self.values.get(name)
        if text is None:
            return default
        if not _WHOLE_NUMBER.fullmatch(text.strip()):
            raise self._wrong(name, text, "a whole number")
        return int(text)

    def threads(self, name: str) -> int:
        """How many threads, 0 for the default. Raises CoreError(INVALID) as `threads_of` says None."""
        text = self.values.get(name, "0")
        if (count := threads_of(text)) is None:
            raise self._wrong(name, text, f"a whole number up to {MOST_THREADS}")
        return count

    def devices(self, name: str) -> str:
        """Such as "cpu:0;gpu:0"; "" for none. Raises CoreError(INVALID) for anything else."""
        text = self.values.get(name, "").strip()
        if text and not _DEVICES.fullmatch(text):
            raise self._wrong(name, text, "devices such as cpu:0;gpu:0")
        return text

    def one_of(self, name: str, choices: Mapping[int, Any], default: int) -> Any:
        """The value that `choices` has for the number. Raises CoreError(INVALID) if it has none."""
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
    """What Triton takes for a boolean; None for what is none."""
    return _TRUTHS.get(text.strip().lower())


def threads_of(text: str) -> int | None:
    """How many threads a text asks for; 0, and what is less, is the default, which is 0 here.

    None for what is no whole number, and for more than any machine could use.
    """
    if not _WHOLE_NUMBER.fullmatch(text.strip()) or int(text) > MOST_THREADS:
        return None
    return max(0, int(text))


def shares_threads(settings: Mapping[str, str]) -> bool:
    """Return whether --backend-config wants one pool of threads for all sessions of the process.

    Raises CoreError(INVALID) for a value that is no boolean.
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
    """The onnxruntime.SessionOptions that a configuration asks for.

    directory        the version's, where libraries of custom operators are looked for
    global_threads   whether sessions use the threads of the process instead of their own
    cores            how many the session's threads are bound to, 0 for all
    Raises CoreError(INVALID) for a value that cannot be, and for a library that cannot be loaded.
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
    """Threads of one run where nobody says how many; 0 leaves it to ONNX Runtime.

    It takes one for each core of the machine, also of a process that may use only some of them
    (taskset, cpuset): they would spin in the way of those that work.
    """
    if not hasattr(os, "sched_getaffinity"):  # not on macOS
        return 0
    allowed = len(os.sched_getaffinity(0))
    return allowed if allowed < (os.cpu_count() or 0) else 0


def run_options(config: ModelConfig) -> Any:
    """The onnxruntime.RunOptions of the runs of one instance, which breaks off its own and no others.

    Raises CoreError(INVALID) for a value that cannot be.
    """
    options = ort.RunOptions()
    if places := Parameters(config).devices(ARENA_SHRINKAGE):
        options.add_run_config_entry(ARENA_SHRINKAGE, places)
    return options


def shares_session(config: ModelConfig) -> bool:
    """Return whether the instances of one device use one session, and so one copy of the weights."""
    return Parameters(config).boolean(SHARE_SESSION, True)


def _add_entry(options: Any, name: str, value: str, model: str) -> None:
    try:
        options.add_session_config_entry(name, value)
    except Exception as error:
        raise invalid(
            f"model '{model}': ONNX Runtime refuses the parameter '{name}' with value '{value}': "
            f"{error}"
        ) from error


def _add_operators(options: Any, filename: str, directory: Path, model: str) -> None:
    """Load a library of custom operators: from the version's folder, the model's, or as it is."""
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
