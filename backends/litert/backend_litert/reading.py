"""Read a file without running it: its tensors, signatures and operators.

folder of a version ─► [reading] ─► bytes, Ports.  The flat buffer of a file is read in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from backend_litert.tensors import Port, Ports, type_name
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid
from core.model_file import check_readable, not_found

FILENAME = "model.tflite"

_IDENTIFIER = b"TFL3"
_VARIABLES = schema.BuiltinOperator.VAR_HANDLE


@dataclass(frozen=True)
class Contents:
    """What a file says.

    signatures      key → Ports; "" for the tensors of the graph, of a file without signatures
    has_variables   whether an operator uses a variable that lives longer than a run
    """

    signatures: dict[str, Ports]
    has_variables: bool

    def ports(self, signature: str, model: str) -> Ports:
        """Return the ports of a signature; "" for the only one, or serving_default.

        Raises CoreError(INVALID) with the signatures that there are.
        """
        there = self.signatures
        if signature in there:
            return there[signature]
        if not signature and len(there) == 1:
            return next(iter(there.values()))
        if not signature and "serving_default" in there:
            return there["serving_default"]
        names = ", ".join(sorted(there)) if any(there) else "none"
        asked = f"no signature '{signature}'" if signature else "several signatures"
        raise invalid(
            f"model '{model}': the file has {asked}; it has: {names}; name one with the parameter "
            "'signature' in config.pbtxt"
        )


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the file of a version: `default_model_filename`, or model.tflite.

    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    path = directory / (config.default_model_filename or FILENAME)
    if path.is_file():
        return path
    raise not_found(path, config.name)


def read_bytes(path: Path, model: str) -> bytes:
    """Return the content of a file. Raises CoreError if it cannot be read, or is of another format."""
    check_readable(path, model)
    content = path.read_bytes()
    if content[4:8] != _IDENTIFIER:
        found = "is empty" if not content else f"begins with {content[:8]!r}"
        raise unreadable(
            path, model, f"it {found}, and is no file of LiteRT; copy or convert it again"
        )
    return content


def contents(content: bytes, path: Path, model: str) -> Contents:
    """Return what a file says. Raises CoreError(INTERNAL) for a damaged one."""
    try:
        return _contents(schema.Model.GetRootAs(content))
    except CoreError:
        raise
    except Exception as error:  # the reader checks no offsets: it can fail in any way
        raise unreadable(
            path, model, f"it is damaged; copy or convert it again ({error!r})"
        ) from None


def unreadable(path: Path, model: str, reason: str) -> CoreError:
    """Return the error for a file."""
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def litert_version() -> str:
    return version("ai-edge-litert")


def _contents(model: Any) -> Contents:
    graph = model.Subgraphs(0)
    codes = {_code(model.OperatorCodes(i)) for i in range(model.OperatorCodesLength())}
    if not model.SignatureDefsLength():
        inputs, outputs = _numbers(graph.InputsAsNumpy()), _numbers(graph.OutputsAsNumpy())
        signatures = {"": Ports(_of_graph(graph, inputs), _of_graph(graph, outputs))}
    else:
        signatures = {}
        for i in range(model.SignatureDefsLength()):
            each = model.SignatureDefs(i)
            number, key = each.SubgraphIndex(), each.SignatureKey().decode()
            graph = model.Subgraphs(number)
            given = [each.Inputs(n) for n in range(each.InputsLength())]
            taken = [each.Outputs(n) for n in range(each.OutputsLength())]
            signatures[key] = Ports(_named(graph, given), _named(graph, taken), number, key)
    return Contents(signatures, _VARIABLES in codes)


def _code(code: Any) -> int:
    return max(int(code.BuiltinCode()), int(code.DeprecatedBuiltinCode()))


def _of_graph(graph: Any, numbers: Sequence[int]) -> dict[str, Port]:
    """Return the ports of the tensors with these numbers. A name that comes again gets the number too."""
    found: dict[str, Port] = {}
    for number in numbers:
        tensor = graph.Tensors(number)
        name = (tensor.Name() or b"").decode() or f"tensor_{number}"
        if name in found:
            name = f"{name}_{number}"
        found[name] = _port(name, number, tensor)
    return found


def _named(graph: Any, entries: Sequence[Any]) -> dict[str, Port]:
    found = {}
    for each in entries:
        name, number = each.Name().decode(), int(each.TensorIndex())
        found[name] = _port(name, number, graph.Tensors(number))
    return found


def _port(name: str, number: int, tensor: Any) -> Port:
    shape = _numbers(tensor.ShapeAsNumpy())
    dims = _numbers(tensor.ShapeSignatureAsNumpy()) or shape
    quantisation, scale = tensor.Quantization(), None
    if quantisation is not None and quantisation.ScaleLength() == 1:
        point = int(quantisation.ZeroPoint(0)) if quantisation.ZeroPointLength() else 0
        scale = float(quantisation.Scale(0)), point
    return Port(name, type_name(tensor.Type()), dims, number, scale)


def _numbers(array: Any) -> tuple[int, ...]:
    """Return a vector of a flat buffer; () for one that is not there, which numpy's reader gives as 0."""
    return () if isinstance(array, int) else tuple(int(each) for each in array)
