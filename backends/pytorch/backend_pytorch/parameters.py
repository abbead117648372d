"""Read `parameters` of config.pbtxt. Errors name the model, the parameter and the value.

ModelConfig ─► [Parameters] ─► threads, programs, instances.  Names and defaults are those of Triton's
PyTorch backend.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from core.config import ModelConfig
from core.errors import CoreError, invalid

_TRUTHS = {
    **dict.fromkeys(("1", "true", "on", "yes"), True),
    **dict.fromkeys(("0", "false", "off", "no"), False),
}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_MOST_THREADS = 1024  # or one per core; OpenMP starts any number, or ends the process

BOOLEANS = (
    "DISABLE_OPTIMIZED_EXECUTION",
    "INFERENCE_MODE",
    "DISABLE_CUDNN",
    "ENABLE_WEIGHT_SHARING",
    "ENABLE_CACHE_CLEANING",
    "ENABLE_JIT_EXECUTOR",
    "ENABLE_JIT_PROFILING",
    "ENABLE_TENSOR_FUSER",
    "ENABLE_NVFUSER",
)
NUMBERS = ("INTER_OP_THREAD_COUNT", "INTRA_OP_THREAD_COUNT", "NUM_THREADS", "NUM_INTEROP_THREADS")
COMPILE = "TORCH_COMPILE_OPTIONAL_PARAMETERS"
COMPILE_KEYS = ("fullgraph", "dynamic", "backend", "mode", "options", "disable")
MODEL_CLASS = "MODEL_CLASS"
ENVIRONMENT = "EXECUTION_ENV_PATH"  # of Triton, which runs modules in child processes
KNOWN = (*BOOLEANS, *NUMBERS, COMPILE, MODEL_CLASS, ENVIRONMENT)


class Parameters:
    """The parameters of one model."""

    def __init__(self, config: ModelConfig):
        self._model = config.name
        self._values = {name: entry.string_value for name, entry in config.parameters.items()}

    def check(self) -> None:
        """Check all parameters. Raises CoreError(INVALID) for the first invalid one."""
        for name in BOOLEANS:
            self.boolean(name)
        for name in NUMBERS:
            self.threads(name)
        self.compile()

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def boolean(self, name: str) -> bool | None:
        """Return the value of true or false (also 1, 0, on, off, yes, no); None if it is not set.

        Raises CoreError(INVALID) for other text.
        """
        text = self._values.get(name)
        if text is None:
            return None
        if (value := _TRUTHS.get(text.strip().lower())) is None:
            raise self._wrong(name, text, "true or false")
        return value

    def threads(self, *names: str) -> int | None:
        """Return the number of threads of the first of these names that is set.

        Returns None, for the default, if none is set, and for 0 and negative numbers. Raises
        CoreError(INVALID) for other text.
        """
        for name in names:
            if (text := self._values.get(name)) is not None:
                most = max(_MOST_THREADS, os.cpu_count() or 0)
                if not _WHOLE_NUMBER.fullmatch(text.strip()) or int(text) > most:
                    raise self._wrong(name, text, f"a whole number up to {most} (0: the default)")
                return int(text) if int(text) > 0 else None
        return None

    def compile(self) -> dict[str, Any] | None:
        """Return the arguments of torch.compile; None if the parameter is not set.

        Raises CoreError(INVALID) for other text than a JSON object of known keys.
        """
        text = self._values.get(COMPILE)
        if text is None:
            return None
        try:
            found = json.loads(text)
        except ValueError as error:
            raise self._wrong(COMPILE, text, f"a JSON object ({error})") from error
        if not isinstance(found, dict):
            raise self._wrong(COMPILE, text, "a JSON object")
        for key in found:
            if key not in COMPILE_KEYS:
                raise self._wrong(COMPILE, text, f"an object with {', '.join(COMPILE_KEYS)} only")
        return found

    def _wrong(self, name: str, found: str, expected: str) -> CoreError:
        return invalid(
            f"model '{self._model}': parameter '{name}' is '{found}', it must be {expected}; "
            "change it in config.pbtxt"
        )
