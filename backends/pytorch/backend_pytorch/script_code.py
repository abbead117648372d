"""Read the arguments of a TorchScript program from the code in its archive, without torch and pickles.

model.pt ─► [script_ports] ─► Ports.  The code is in Python's syntax; it is parsed and never run. The pickle
names the class of the model in its first global: its opcodes are listed and never executed.
"""

from __future__ import annotations

import ast
import io
import pickletools
import zipfile
from pathlib import Path

from backend_pytorch.program import Port
from core.errors import CoreError, unsupported

_MOST_BYTES = 16 << 20
_TEXT = "List[str]"
_MOST_OPCODES = 1000


class Unclear(ValueError):
    """The archive does not say what a load would find."""


def script_ports(path: Path, model: str) -> list[Port] | None:
    """Return the arguments of forward; None if it takes a single dict of tensors.

    Raises Unclear if the archive does not say so in the known way, and CoreError(UNSUPPORTED) for an argument
    of another type without a default.
    """
    with zipfile.ZipFile(path) as archive:
        root = archive.namelist()[0].partition("/")[0]
        module, name = _class(read_part(archive, f"{root}/data.pkl"))
        code = read_part(archive, f"{root}/code/{module.replace('.', '/')}.py")
    forward = _forward(code, name)
    arguments = [*forward.args.args, *forward.args.kwonlyargs][1:]  # the first is the module
    defaults = len(forward.args.defaults)
    positional = len(forward.args.args)
    found = []
    for number, each in enumerate(arguments, 1):
        kind = ast.unparse(each.annotation) if each.annotation is not None else "Tensor"
        if len(arguments) == 1 and kind.replace(" ", "") == "Dict[str,Tensor]":
            return None
        has_default = number >= positional - defaults
        found.append(_port(each.arg, kind, has_default, model))
    return found


def read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a file of an archive. Raises Unclear if it is missing or large."""
    try:
        info = archive.getinfo(name)
        if info.file_size > _MOST_BYTES:
            raise Unclear(f"'{name}' has {info.file_size} bytes")
        with archive.open(info) as file:
            content = file.read(_MOST_BYTES + 1)
    except (
        KeyError,
        zipfile.BadZipFile,
        OSError,
        RuntimeError,
        NotImplementedError,
        EOFError,
    ) as error:
        raise Unclear(str(error)) from None
    except Exception as error:  # zlib and others have their own errors
        raise Unclear(f"{type(error).__name__}: {error}") from None
    if len(content) > _MOST_BYTES:
        raise Unclear(f"'{name}' is larger than it says")
    return content


def _class(pickle: bytes) -> tuple[str, str]:
    """Return module and name of the class in the first global of a pickle."""
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(io.BytesIO(pickle))):
            if opcode.name == "GLOBAL":
                module, _, name = str(argument).partition(" ")
                return module, name
            if number > _MOST_OPCODES:
                break
    except Exception as error:  # genops raises many types of errors for damaged bytes
        raise Unclear(str(error)) from None
    raise Unclear("its pickle names no class")


def _forward(code: bytes, name: str) -> ast.FunctionDef:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unclear(str(error)) from None
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name == "forward":
                    return each
            methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            raise NoForward(methods)
    raise Unclear(f"its code has no class {name}")


class NoForward(Exception):
    """The program has no method forward; `methods` are those that it has."""

    def __init__(self, methods: list[str]):
        super().__init__(methods)
        self.methods = methods


def _port(name: str, kind: str, has_default: bool, model: str) -> Port:
    kind = kind.replace(" ", "")
    optional = has_default or kind.startswith("Optional[")
    inner = (
        kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    )
    if inner not in ("Tensor", _TEXT) and not optional:
        raise _unservable(model, name, kind)
    return Port(name, text=inner == _TEXT, optional=optional)


def _unservable(model: str, name: str, kind: str) -> CoreError:
    return unsupported(
        f"model '{model}': argument '{name}' of forward is of type {kind}; clients can send tensors and "
        "List[str] (or one Dict[str, Tensor] alone): give it a default, or export a module that takes a "
        "tensor in its place"
    )
