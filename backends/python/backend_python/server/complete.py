"""Run auto_complete_config in a child that lives for this call only."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from backend_python import protocol
from backend_python.adapters import adapter_of
from backend_python.environments.environment import environments
from backend_python.runner import CLASS
from backend_python.server import process
from backend_python.server.errors import unhealthy
from backend_python.server.found import add_adapters
from backend_python.server.model import (
    check_file,
    model_file_of,
    module_of,
    open_environment,
    settings_apart,
)
from backend_python.server.process import Died
from backend_python.server.settings import Settings
from backend_python.server.template import SharedTemplate, template
from core import config as configuration
from core.backend import Backend
from core.config import ModelConfig
from core.errors import internal

FUNCTION = "auto_complete_config"


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Let the model complete its configuration, in place. Blocks: call from a worker thread.

    Starts no child if a Python file certainly has no auto_complete_config (`cannot_complete`), or if the
    configuration has inputs and outputs and the adapter of another file adds nothing to these.
    path   of the version directory
    Raise CoreError with the model's own text and traceback if its function raises, and if the file is
    missing, the environment cannot be used, or the child dies.
    """
    file = model_file_of(config, path, backend)
    check_file(file, backend)
    if file.suffix == ".py":
        if cannot_complete(file.read_bytes()):
            return
    elif config.input and config.output and not _describes_more(file):
        return
    environment = open_environment(config, path, backend)
    try:
        origin = template if environment is None else environment.template
        _complete(config, path, backend, file, origin)
    finally:
        if environment is not None:
            environments.release(environment)


def _describes_more(file: Path) -> bool:
    """Return whether the adapter of a model file may add inputs and outputs to those of config.pbtxt."""
    add_adapters()
    adapter = adapter_of(str(file))
    return adapter is not None and adapter.describes_more(str(file))


def _complete(
    config: ModelConfig, path: Path, backend: Backend, file: Path, origin: SharedTemplate
) -> None:
    name = f"{config.name}_auto_complete"
    child = process.start(name, Settings(backend.config), None, origin)
    question = {
        "file": str(file),
        "module": module_of(file, path),
        "directory": str(path),
        "model": config.name,
        "config": json.dumps(configuration.to_json(config)),
        "settings": settings_apart(backend),
        "adapters": add_adapters(),
    }
    try:
        answer = child.ask(protocol.COMPLETE, question, protocol.COMPLETED, None)
    except Died:
        raise unhealthy(name) from None
    finally:
        child.kill()
    if "error" in answer:
        raise internal(answer["error"])
    if answer["config"] is not None:
        source = f"{FUNCTION} of model '{config.name}'"
        updated = configuration.parse_json(json.dumps(answer["config"]), source)
        configuration.complete(config, updated)


def cannot_complete(source: bytes) -> bool:
    """Return whether the file certainly has no auto_complete_config, so that no child must be started.

    True only for a plain class TritonPythonModel without bases and decorators, at the top level of a file
    that contains neither the word auto_complete_config nor the word setattr.
    """
    if FUNCTION.encode() in source or b"setattr" in source:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # the child reports the error, with Triton's text
    except SystemError:
        return False  # Python 3.11 counts one depth for all threads that parse; the child has one thread
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == CLASS:
            return not (node.bases or node.keywords or node.decorator_list)
    return False
