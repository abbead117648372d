"""Read the files of a version, without TVM: the function that answers requests, and its weights.

folder of a version ─► elf, executable, annotations, params ─► [reading] ─► ReadModel.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backend_tvm.annotations import tensor_type, tensor_types
from backend_tvm.elf import check_library
from backend_tvm.executable import Function, functions_of
from backend_tvm.params import read_params
from backend_tvm.settings import Settings
from backend_tvm.tensors import Ports, named, sizes_of
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid, unsupported
from core.model_file import check_readable, not_found

FILENAME = "model.so"

Weights = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class ReadModel:
    """A version's files, and what they say.

    library      path of the compiled module
    function     name of the function that answers requests
    parameters   all names of its parameters in order: of inputs, and of weights
    weights      name → array, which the file of weights backs
    ports        inputs and outputs
    """

    library: Path
    function: str
    parameters: tuple[str, ...]
    weights: Weights
    ports: Ports


def read_model(config: ModelConfig, directory: Path, settings: Settings) -> ReadModel:
    """Return what the files of a version say.

    Raises CoreError: UNAVAILABLE for a missing file, INTERNAL for a damaged one, INVALID for settings or
    weights that do not fit the function, UNSUPPORTED for a function of other things than tensors.
    """
    path = directory / (config.default_model_filename or FILENAME)
    if not path.is_file():
        raise not_found(path, config.name)
    if path.suffix != ".so":
        raise unsupported(
            f"model '{config.name}': '{path}' is no shared library; write it with "
            "export_library('model.so'): serving does not compile"
        )
    check_readable(path, config.name)
    functions = _functions(path, config.name)
    name = _chosen(functions, settings, config.name)
    weights = _weights(path.with_suffix(".params"), functions[name], config.name)
    return ReadModel(
        path,
        name,
        tuple(functions[name].parameters),
        weights,
        _ports(functions[name], name, weights, settings, config.name),
    )


def names_of(found: Sequence[str], wanted: Sequence[str], parameter: str, model: str) -> list[str]:
    """Return the names that the parameter gives, else those found.

    Raises CoreError(INVALID) for another number of them.
    """
    if not wanted:
        return list(found)
    if len(wanted) != len(found):
        raise invalid(
            f"model '{model}': the parameter '{parameter}' has {len(wanted)} names, the function has "
            f"{len(found)}: {', '.join(found)}; name each of them, in this order"
        )
    return list(wanted)


def unreadable(path: Path, model: str, reason: str) -> CoreError:
    """Return the error for a file."""
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def _functions(path: Path, model: str) -> dict[str, Function]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    content = memoryview(mapped)
    try:
        check_library(content)
        return functions_of(content)
    except ValueError as error:
        raise unreadable(path, model, str(error)) from None


def _chosen(functions: Mapping[str, Function], settings: Settings, model: str) -> str:
    """Return the name of the function that answers requests."""
    if settings.function:
        if settings.function not in functions:
            raise invalid(
                f"model '{model}': the module has no function '{settings.function}', only "
                f"{', '.join(functions)}; change the parameter 'function' in config.pbtxt"
            )
        return settings.function
    if "main" in functions:
        return "main"
    public = [each for each in functions if not each.startswith("_")]
    if len(public) != 1:
        raise invalid(
            f"model '{model}': the module has no function 'main', but {', '.join(functions)}; name one with "
            "the parameter 'function' in config.pbtxt"
        )
    return public[0]


def _weights(path: Path, function: Function, model: str) -> Weights:
    """Return the arrays in the file of weights. Raises CoreError if it does not fit the function."""
    if not path.is_file():
        return {}
    check_readable(path, model)
    try:
        found = read_params(path)
    except ValueError as error:
        raise unreadable(
            path, model, f"{error}; write it again with tvm.runtime.save_param_dict"
        ) from None
    for name, array in found.items():
        if name not in function.parameters:
            raise invalid(
                f"model '{model}': '{path}' has weights '{name}', but the function has only the parameters "
                f"{', '.join(function.parameters)}; write both files from one export"
            )
        _check_weights(path, name, array, function, model)
    return found


def _check_weights(
    path: Path, name: str, array: np.ndarray[Any, Any], function: Function, model: str
) -> None:
    """Compare weights with the type of their parameter, if the module has it: it has those of inputs."""
    place = function.parameters.index(name)
    if place not in function.types:
        return
    dtype, written = _type(function, place, model)
    dims = sizes_of(written)
    fits = len(dims) == array.ndim and all(
        a in (b, -1) for a, b in zip(dims, array.shape, strict=True)
    )
    if not fits or str(array.dtype) != dtype:
        raise invalid(
            f"model '{model}': '{path}' has weights '{name}' {array.dtype}{list(array.shape)}, the function "
            f"takes {dtype}[{', '.join(written)}]; write both files from one export"
        )


def _ports(
    function: Function, name: str, weights: Weights, settings: Settings, model: str
) -> Ports:
    places = [i for i, each in enumerate(function.parameters) if each not in weights]
    found = [function.parameters[place] for place in places]
    twice = next((each for each in found if found.count(each) > 1), "")
    if twice and not settings.inputs:
        raise invalid(
            f"model '{model}': two parameters of function '{name}' have the name '{twice}'; name the inputs "
            "with the parameter 'inputs' in config.pbtxt"
        )
    inputs = named(
        names_of(found, settings.inputs, "inputs", model),
        [_type(function, place, model) for place in places],
    )
    if not function.result:
        return Ports(inputs, {}, outputs_known=False)
    try:
        types = [(each.dtype, each.dims) for each in tensor_types(function.result)]
    except ValueError as error:
        raise unsupported(f"model '{model}': function '{name}' returns {error}") from None
    numbered = [f"output{place}" for place in range(len(types))]
    return Ports(inputs, named(names_of(numbered, settings.outputs, "outputs", model), types))


def _type(function: Function, place: int, model: str) -> tuple[str, tuple[str, ...]]:
    """Return datatype and dimensions of a parameter.

    Raises CoreError(UNSUPPORTED) for anything but a tensor.
    """
    name = function.parameters[place]
    if place not in function.types:
        raise unsupported(
            f"model '{model}': the module has no type of parameter '{name}'; if these are weights, write "
            "them to a file of the module's name with .params: tvm.runtime.save_param_dict_to_file"
        )
    try:
        found = tensor_type(function.types[place])
    except ValueError as error:
        raise unsupported(
            f"model '{model}': parameter '{name}' is {error}; a function for serving takes tensors only"
        ) from None
    return found.dtype, found.dims
