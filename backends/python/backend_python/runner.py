"""Load a model.py and call its TritonPythonModel; in a child, or in the server's own process."""

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
    """Compiles the file as it is now.

    Python's bytecode cache tells files apart by whole seconds and their size: a model that is changed
    and loaded again within a second would run as it was.
    """

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def load_module(file: str, name: str, version: str = "") -> ModuleType:
    """Import a model's file as module `name`.

    version   the version's directory; the file may lie elsewhere, in the folder of a backend
    The version directory and the model's directory go to the end of sys.path, so that the model
    finds modules beside it; for a file of a backend its folder. Raises what the file raises.
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
    """The file's TritonPythonModel, or what an adapter makes of a file without one. Raises what the
    file raises; AttributeError if no class in it could be served."""
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
    """What the model's auto_complete_config makes of `config` (JSON); None if it has no such function."""
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
    """One TritonPythonModel object. Its methods are called by one thread at a time.

    Raises whatever the model raises; `described` gives the text that Triton gives.
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
        """What the model's is_ready says, sync or async; True if it has none."""
        with answering():
            returned = self.ask_ready()
            if is_coroutine(returned):
                returned = self._run_anywhere(returned)
        return checked_readiness(returned)

    def ask_ready(self) -> Any:
        """What the model's is_ready returns: a coroutine, or what `checked_readiness` looks at."""
        return self._model.is_ready() if self.tells_readiness else True

    def call(self, requests: list[InferenceRequest]) -> Any:
        """What the model's execute returns: a coroutine, or what `checked` looks at.

        It gets a list of its own: a model may take requests out of it as it goes.
        """
        if self._execute is None:
            raise TritonModelException(
                f"Python model {self._file} does not implement `execute` method."
            )
        return self._execute(requests.copy())

    def checked(self, requests: list[InferenceRequest], returned: Any) -> list[Any]:
        """What execute returned, as a list. Refused for what it must not return."""
        return checked(requests, returned, self._decoupled)

    def finalize(self) -> None:
        try:
            if hasattr(self._model, "finalize"):
                self._model.finalize()
        finally:
            self._model = self._execute = None
            # Others live on in this process, and this model may be loaded again and again.
            sys.modules.pop(self._module_name, None)
            if self._loop is not None and self._loop_runs:
                self._loop.call_soon_threadsafe(self._loop.stop)
            elif self._loop is not None:
                self._loop.close()

    def start(self, coroutine: Any, ended: Callable[[BaseException | None], None]) -> None:
        """Run a coroutine beside the caller; `ended` gets its exception, on the loop's thread."""
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
        """Run a coroutine to its end, on the loop that the model has; not that loop's thread."""
        if self._loop is None or not self._loop_runs:
            return self.run(coroutine)
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine to its end, on this thread; its result."""
        # One loop for all batches: what a model keeps between them, such as a session, is tied to it.
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(coroutine)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Until `finalize` stops it."""
    loop.run_forever()
    loop.close()


def checked_readiness(returned: Any) -> bool:
    """What is_ready returned. Refused if it is no bool."""
    if not isinstance(returned, bool):
        raise Refused(f"Expected a bool in the is_ready return, found type '{type(returned)}'.")
    return returned


def is_coroutine(returned: Any) -> bool:
    """Return whether execute was an `async def`."""
    return isinstance(returned, CoroutineType)


def described(error: BaseException) -> str:
    """An exception of a model as Triton writes it: `Type: text`, then where, innermost first."""
    return speakable(_described(error))


def failure(error: BaseException, instance: str) -> tuple[str, int, str, str]:
    """What the log tells of an exception of execute: the file and the line that raised it, the text, and the
    whole traceback with its causes ("" for what execute returned and should not have)."""
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
        return str(error)  # raised by this package about the model
    text = f"{type(error).__name__}: {_text(error)}"
    return f"{text}\n\nAt:\n{frames}" if frames else text


def _text(error: BaseException) -> str:
    try:
        text = str(error) or "<EMPTY MESSAGE>"
    except Exception as broken:
        text = f"<MESSAGE UNAVAILABLE: {type(broken).__name__}>"
    return text


def _of_the_model(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without what has called the model: this package, on a thread or in a coroutine."""
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        ours = _is_ours(traceback.tb_frame.f_code.co_filename)
        if not ours and not module.startswith(("asyncio.", "concurrent.futures.")):
            break
        traceback = traceback.tb_next
    return traceback


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_COMPILED = "backend_python/"  # files of compiled modules are named from the top


def _is_ours(file: str) -> bool:
    return file.startswith((_OURS, _COMPILED))


def _frames(traceback: TracebackType | None) -> str:
    lines = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not _is_ours(code.co_filename) and "importlib" not in code.co_filename:
            lines.append(f"  {code.co_filename}({traceback.tb_lineno}): {code.co_name}\n")
        traceback = traceback.tb_next
    return "".join(reversed(lines))
