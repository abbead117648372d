"""Read the pipeline of a version, without DALI unless it is a Python file.

folder of a version ─► serializing, definition ─► [reading] ─► ReadModel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from backend_dali.definition import Definition, read_definition
from backend_dali.framework import check_installed
from backend_dali.serializing import serialized
from backend_dali.settings import Settings
from backend_dali.tensors import Port, Ports
from core.completion import tensors_of_the_server
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid
from core.model_file import check_readable, not_found

SERIALIZED, PYTHON = "model.dali", "dali.py"
WITHOUT_DIMS = (
    "samples of output '{name}' have no dims, so they have no outer one; remove '{name}' from the parameter "
    "'split_along_outer_axis' in config.pbtxt"
)


@dataclass(frozen=True)
class ReadModel:
    """A version's pipeline.

    path         of the file
    pipeline     serialized
    ports        inputs, and outputs with the names that clients use
    batch_size   rows of a batch that it was written for
    on_gpu       operators that run on a GPU
    """

    path: Path
    pipeline: bytes
    ports: Ports
    batch_size: int
    on_gpu: tuple[str, ...]


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the file of a version: `default_model_filename`, else model.dali, else dali.py.

    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    wanted = (
        [config.default_model_filename] if config.default_model_filename else [SERIALIZED, PYTHON]
    )
    for name in wanted:
        if (directory / name).is_file():
            return directory / name
    raise not_found(directory / wanted[0], config.name)


def read_model(config: ModelConfig, directory: Path, settings: Settings) -> ReadModel:
    """Return the pipeline of a version. A Python file runs in a process of its own.

    Raises CoreError: UNAVAILABLE for a missing file, INTERNAL for a damaged one or a failing Python file,
    INVALID for outputs that do not fit the pipeline.
    """
    path = model_file(config, directory)
    check_readable(path, config.name)
    try:
        if path.suffix == ".py":
            check_installed(config.name)
            content = serialized(path)
        else:
            content = path.read_bytes()
        definition = read_definition(content)
    except ValueError as error:
        raise unreadable(path, config.name, str(error)) from None
    ports = Ports(definition.ports.inputs, _outputs(definition, config, settings))
    return ReadModel(path, content, ports, definition.batch_size, definition.on_gpu)


def unreadable(path: Path, model: str, reason: str) -> CoreError:
    """Return the error for a file."""
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def _outputs(definition: Definition, config: ModelConfig, settings: Settings) -> dict[str, Port]:
    """Return the outputs, each with the name in the configuration; in Triton, the order decides."""
    found = definition.ports.outputs
    names = list(found)
    given = [io.name for io in config.output]
    given += sorted(tensors_of_the_server(config)[1] - set(given))
    if given and not set(given) <= set(names):
        if len(given) != len(names):
            raise invalid(
                f"model '{config.name}': the configuration has {len(given)} outputs "
                f"({', '.join(given)}), the pipeline {len(names)} ({', '.join(names)}); name each of "
                "them in config.pbtxt, in this order"
            )
        names = given
    if unknown := [each for each in settings.split if each not in names]:
        raise invalid(
            f"model '{config.name}': the parameter 'split_along_outer_axis' names {', '.join(unknown)}, the "
            f"outputs are {', '.join(names)}; change config.pbtxt"
        )
    for name, port in zip(names, found.values(), strict=True):
        if name in settings.split and port.ndim == 0:
            raise invalid(f"model '{config.name}': {WITHOUT_DIMS.format(name=name)}")
    return {
        name: _renamed(port, name, name in settings.split)
        for name, port in zip(names, found.values(), strict=True)
    }


def _renamed(port: Port, name: str, split: bool) -> Port:
    ndim = port.ndim - 1 if port.ndim and split else port.ndim
    return replace(port, name=name, ndim=ndim)
