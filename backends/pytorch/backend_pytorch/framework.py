"""Import torch for the first model, and convert its errors.

Backend.open ─► [framework] ─► all other modules.  Some modules of this package import torch at their
top. Import these inside functions only, after `import_torch`.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.errors import CoreError, internal, unavailable


def import_torch() -> Any:
    """Import and return torch. The first call takes seconds. Thread-safe.

    Raises CoreError(UNAVAILABLE) with the reason if torch is not installed, or broken.
    """
    try:
        import torch
    except Exception as error:  # a broken installation may raise any exception
        raise unavailable(
            f"backend 'pytorch' cannot import torch: {type(error).__name__}: {error}; try: pip install "
            "--force-reinstall 'torch>=2.8', and `python -c 'import torch'` in the same environment"
        ) from error
    # Inputs are read-only views of the clients' messages. Inputs that a model may write to are copied first.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    return torch


_loading = threading.RLock()


@contextmanager
def loading_alone() -> Iterator[None]:
    """Let one thread of the process at a time load models with torch. Thread-safe; may be nested.

    core loads several models at once, but torch cannot: torch.export.load keeps its deserializer in a
    global variable. Modules that torch imports on first use (torch._dynamo, torch.export's reader of
    archives) import each other, so that a second thread would use them half imported. Other models can run
    during a load. torch.compile compiles in a model's first runs, on the instance's thread. If torch has
    imported its compiler already, this function takes the compiler's lock, so these first runs wait.
    """
    with _loading:
        converter = sys.modules.get("torch._dynamo.convert_frame")
        compiling = getattr(converter, "compile_lock", None)
        if compiling is None:  # nothing is compiled yet
            yield
            return
        with compiling:
            yield


def has_gpus() -> bool:
    """Return whether torch can use a GPU; False without torch. Thread-safe. May import torch."""
    try:
        return bool(import_torch().cuda.is_available())
    except CoreError:
        return False  # the load of a model reports the reason


def first_line(error: BaseException) -> str:
    """Return the text of an error of torch without the stack of C++."""
    text = str(error).strip()
    for marker in ("\nException raised from", "\nC++ CapturedTraceback", "\n\nCOMPILE_TIME_"):
        text = text.partition(marker)[0]
    return text.strip() or type(error).__name__


def execute_failure(model: str, error: BaseException) -> CoreError:
    """Return the error for an exception of a run, in Triton's form."""
    # The text of a Python error is often unclear without its type: that of a KeyError is the key.
    kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
    return internal(f"PyTorch execute failure: {kind}{first_line(error)} (model '{model}')")
