"""torch itself: imported when the first model asks, and what to say if it cannot be.

Backend.open ─► [framework] ─► everything else here.  Modules that need torch at their top are imported
in functions, after this.
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
    """The module torch. The first call takes seconds; any thread.

    Raises CoreError(UNAVAILABLE) with the reason if it is not installed, or broken.
    """
    try:
        import torch
    except (
        Exception
    ) as error:  # a library that does not fit raises OSError, a mixed-up one anything
        raise unavailable(
            f"backend 'pytorch' cannot import torch: {type(error).__name__}: {error}; try: pip install "
            "--force-reinstall 'torch>=2.8', and `python -c 'import torch'` in the same environment"
        ) from error
    # Inputs are views of what clients sent, and numpy knows that; what is written to is copied first.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    return torch


_loading = threading.RLock()


@contextmanager
def loading_alone() -> Iterator[None]:
    """Let one thread of the process at a time load models with torch. Any thread; may be nested.

    core loads several models at once, and torch cannot: torch.export.load keeps its deserializer in a
    global variable, and modules that torch imports on first use (torch._dynamo, torch.export's reader
    of archives) import each other, so a second thread meets them half imported. Models run meanwhile.
    A model of torch.compile is compiled in its first runs, on the thread of its instance: torch has a
    lock for that, which is taken here too.
    """
    with _loading:
        converter = sys.modules.get("torch._dynamo.convert_frame")
        compiling = getattr(converter, "compile_lock", None)
        if compiling is None:  # nothing has been compiled yet
            yield
            return
        with compiling:
            yield


def has_gpus() -> bool:
    """Return whether there is a torch that can use a GPU. Any thread; may import torch."""
    try:
        return bool(import_torch().cuda.is_available())
    except CoreError:
        return False  # the load of a model says why


def first_line(error: BaseException) -> str:
    """The text of an error of torch without the stack of C++ below it."""
    text = str(error).strip()
    for marker in ("\nException raised from", "\nC++ CapturedTraceback", "\n\nCOMPILE_TIME_"):
        text = text.partition(marker)[0]
    return text.strip() or type(error).__name__


def execute_failure(model: str, error: BaseException) -> CoreError:
    """An exception of a run, as Triton words it."""
    # An error of Python is often a bare word, that of a KeyError the key.
    kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
    return internal(f"PyTorch execute failure: {kind}{first_line(error)} (model '{model}')")
