"""Load a model.py and call its TritonPythonModel, in a child process or in the server's own process."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CoroutineType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from backend_python import adapters
from backend_python.api.errors import TritonModelException
from backend_python.api.host import answering
from backend_python.api.model_config import ModelConfig
from backend_python.api.request import InferenceRequest
from backend_python.returned import Refused, checked
from backend_python.strings import speakable

if TYPE_CHECKING:
    import asyncio  # at run time only for models with a coroutine: it takes longer than numpy

CLASS = "TritonPythonModel"


class _FreshLoader(SourceFileLoader):
    """Compiles the current content of the file, without the bytecode cache.

    The cache compares only size and time in whole seconds: a model that is changed and loaded again within
    a second could run its old code.
    """

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def load_module(file: str, name: str, version: str = "") -> ModuleType:
    """Import a model's file as module `name`.

    version   the version's directory; the file may be in the folder of a backend instead
    Appends the version directory and the model's directory to sys.path, so that the model can import
    modules next to it. For a file of a backend, appends only the folder of the file. Raises the errors of
    the file.
    """
    import triton_python_backend_utils  # noqa: F401  the model imports it by this name

    home = os.path.dirname(file)
    elsewhere = version and not file.startswith(version + os.sep)
    for directory in (home,) if elsewhere else (home, os.path.dirname(home)):
        if directory not in sys.path:
            sys.path.append(directory)
    spec = importlib.util.spec_from_file_location(name, file, loader=_FreshLoader(name, file))
    if spec is None or spec.loader is None or not file.endswith(".py"):
        raise ImportError(f"'{file}' is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # classes of the model are found by it, for example by pickle
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def model_class(file: str, module_name: str, version: str = "") -> Any:
    """Return the file's TritonPythonModel, or the result of an adapter for a file without one. Raises the
    errors of the file; AttributeError if neither exists."""
    if not file.endswith(".py") and (adapter := adapters.adapter_of(file)) is not None:
        return adapter.model_of_file(file)
    module = load_module(file, module_name, version)
    if not hasattr(module, CLASS):
        for each in adapters.imported():
            if (found := each.model_of_module(module, file)) is not None:
                return found
    return getattr(module, CLASS)


def complete(
    file: str, module_name: str, version: str, model_name: str, config: str
) -> dict[str, Any] | None:
    """Return `config` (JSON) completed by the model's auto_complete_config; None if it has no such function.

    Raises TritonModelException if the function returns no ModelConfig.
    """
    model = model_class(file, module_name, version)
    if not hasattr(model, "auto_complete_config"):
        return None
    completed = model.auto_complete_config(ModelConfig(config))
    if not isinstance(completed, ModelConfig):
        raise TritonModelException(
            f"auto_complete_config function in model '{model_name}' must return a valid "
            "pb.ModelConfig object."
        )
    return completed.as_dict()


class ModelRunner:
    """One TritonPythonModel object. One thread at a time calls its methods.

    Raises the errors of the model; `described` returns their text as Triton writes it.
    """

    def __init__(self, file: str, module_name: str, version: str, decoupled: bool):
        self._file = file
        self._module_name = module_name
        self._decoupled = decoupled
        self._model = model_class(file, module_name, version)()
        self._execute = getattr(self._model, "execute", None)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_runs = False  # on a thread of its own

    def initialize(self, arguments: dict[str, str]) -> None:
        if hasattr(self._model, "initialize"):
            self._model.initialize(arguments)

    @property
    def tells_readiness(self) -> bool:
        """True if the model has an `is_ready`."""
        return hasattr(self._model, "is_ready")

    def is_ready(self) -> bool:
        """Run the model's is_ready, sync or async, and return its value; True if the model has none.

        Raises Refused if the value is no bool.
        """
        with answering():
            returned = self.ask_ready()
            if is_coroutine(returned):
                returned = self._run_anywhere(returned)
        return checked_readiness(returned)

    def ask_ready(self) -> Any:
        """Call is_ready and return its value or coroutine, unchecked; True if the model has no is_ready."""
        return self._model.is_ready() if self.tells_readiness else True

    def call(self, requests: list[InferenceRequest]) -> Any:
        """Call the model's execute and return its value for `checked`, or its coroutine.

        The model receives a copy of the list, because it may remove requests from it.
        """
        if self._execute is None:
            raise TritonModelException(
                f"Python model {self._file} does not implement `execute` method."
            )
        return self._execute(requests.copy())

    def checked(self, requests: list[InferenceRequest], returned: Any) -> list[Any]:
        """Return the value of execute as a list. Raises Refused if execute must not return it."""
        return checked(requests, returned, self._decoupled)

    def finalize(self) -> None:
        try:
            if hasattr(self._model, "finalize"):
                self._model.finalize()
        finally:
            self._model = self._execute = None
            # The process may outlive the model and load it many times.
            sys.modules.pop(self._module_name, None)
            if self._loop is not None and self._loop_runs:
                self._loop.call_soon_threadsafe(self._loop.stop)
            elif self._loop is not None:
                self._loop.close()

    def start(self, coroutine: Any, ended: Callable[[BaseException | None], None]) -> None:
        """Start a coroutine on the loop's own thread, which calls `ended` with its exception or None."""
        import asyncio
        import threading

        if not self._loop_runs:
            self._loop = self._loop or asyncio.new_event_loop()
            self._loop_runs = True
            threading.Thread(target=_run, args=(self._loop,), name="execute", daemon=True).start()
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(lambda done: ended(done.exception()))

    def _run_anywhere(self, coroutine: Any) -> Any:
        """Run a coroutine to its end and return its result. Do not call this on the loop's own thread."""
        if self._loop is None or not self._loop_runs:
            return self.run(coroutine)
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine to its end on this thread and return its result."""
        # One loop for all batches: objects that a model keeps, such as a session, are tied to it.
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(coroutine)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until `finalize` stops it, then close it."""
    loop.run_forever()
    loop.close()


def checked_readiness(returned: Any) -> bool:
    """Return the value of is_ready. Raises Refused if it is no bool."""
    if not isinstance(returned, bool):
        raise Refused(f"Expected a bool in the is_ready return, found type '{type(returned)}'.")
    return returned


def is_coroutine(returned: Any) -> bool:
    """Return whether a model's function returned a coroutine, so that it is an `async def`."""
    return isinstance(returned, CoroutineType)


def described(error: BaseException) -> str:
    """Return a model's exception as Triton writes it: `Type: text`, then its frames, innermost first."""
    return speakable(_described(error))


def failure(error: BaseException, instance: str) -> tuple[str, int, str, str]:
    """Return the parts of the log line for an exception of execute: the file and the line that raised it, the
    text, and the whole traceback with its causes ("" for an invalid return value)."""
    import traceback

    begin = _of_the_model(error.__traceback__)
    at = traceback.extract_tb(begin)
    file, line = (at[-1].filename, at[-1].lineno or 0) if at else (instance, 0)
    whole = "".join(traceback.format_exception(type(error), error, begin)) if at else ""
    text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {_text(error)}"
    said = speakable(f"execute of '{instance}' failed: {text}")
    return speakable(file), line, said, speakable(whole.rstrip())


def _described(error: BaseException) -> str:
    if isinstance(error, Refused):
        return str(error)
    frames = _frames(_of_the_model(error.__traceback__))
    if isinstance(error, TritonModelException) and not frames:
        return str(error)  # raised by this package, not by the model
    text = f"{type(error).__name__}: {_text(error)}"
    return f"{text}\n\nAt:\n{frames}" if frames else text


def _text(error: BaseException) -> str:
    try:
        text = str(error) or "<EMPTY MESSAGE>"
    except Exception as broken:
        text = f"<MESSAGE UNAVAILABLE: {type(broken).__name__}>"
    return text


def _of_the_model(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the outer frames of this package and asyncio that called the model."""
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        ours = _is_ours(traceback.tb_frame.f_code.co_filename)
        if not ours and not module.startswith(("asyncio.", "concurrent.futures.")):
            break
        traceback = traceback.tb_next
    return traceback


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_COMPILED = "backend_python/"  # compiled modules have relative file names


def _is_ours(file: str) -> bool:
    return file.startswith((_OURS, _COMPILED, *adapters.folders()))


def _frames(traceback: TracebackType | None) -> str:
    lines = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not _is_ours(code.co_filename) and "importlib" not in code.co_filename:
            lines.append(f"  {code.co_filename}({traceback.tb_lineno}): {code.co_name}\n")
        traceback = traceback.tb_next
    return "".join(reversed(lines))
