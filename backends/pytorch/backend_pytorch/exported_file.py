"""Read the inputs and outputs of an exported program from the JSON in its archive, without torch.

model.pt2 ─► [exported_program] ─► Program with takes, gives and most_rows, as a load has them.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend_pytorch.program import Port, Program, datatype_of
from backend_pytorch.script_code import Unclear, read_part
from backend_pytorch.structure import input_names, output_names, paths

_SCHEMA = 8  # the first number of the version of the JSON that this module knows
_DTYPES = {  # by ScalarType of the schema
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    34: "uint32",
    35: "uint64",
}
_CONTAINERS = {"builtins.tuple": tuple, "builtins.list": list, "builtins.dict": dict}
_DEEPEST = 50


@dataclass
class _Spec:
    """A tree of containers, with the attributes of torch's TreeSpec that `structure` reads."""

    type: Any
    context: Any
    children_specs: list[_Spec]

    def is_leaf(self) -> bool:
        return self.type is None


def exported_program(path: Path, model: str) -> Program:
    """Return the inputs and outputs of an exported program.

    Raises Unclear if the archive does not say so in the known way, and CoreError(UNSUPPORTED) for containers
    other than tuple, list and dict.
    """
    with zipfile.ZipFile(path) as archive:
        names = [each for each in archive.namelist() if each.endswith("/models/model.json")]
        if not names:
            raise Unclear("it has no models/model.json")
        content = read_part(archive, names[0])
    try:
        return _program(json.loads(content), model)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise Unclear(f"{type(error).__name__}: {error}") from None


def _program(value: Any, model: str) -> Program:
    if value["schema_version"]["major"] != _SCHEMA:
        raise Unclear(f"its schema has version {value['schema_version']}")
    module = value["graph_module"]
    tensors, signature = module["graph"]["tensor_values"], module["signature"]
    takes = [each["user_input"]["arg"] for each in signature["input_specs"] if "user_input" in each]
    gives = [
        each["user_output"]["arg"] for each in signature["output_specs"] if "user_output" in each
    ]
    call = module["module_call_graph"][0]["signature"]
    in_spec, out_spec = _spec(call["in_spec"]), _spec(call["out_spec"])
    program = Program()
    program.kind = "torch.export"
    program.takes = [
        _port(_name(argument), alias, argument, tensors)
        for argument, alias in zip(takes, input_names(in_spec, model), strict=True)
    ]
    ways = paths(out_spec, model)
    plain = [f"OUTPUT__{number}" for number in range(len(ways))]
    if out_spec.type is dict and all(len(way) == 1 for way in ways):
        plain = [way[0] for way in ways]
    program.gives = [
        _port(name, alias, argument, tensors)
        for name, alias, argument in zip(plain, output_names(out_spec, model), gives, strict=True)
    ]
    program.most_rows = _most_rows(takes, tensors, value.get("range_constraints", {}))
    return program


def _spec(text: str) -> _Spec:
    version, tree = json.loads(text)
    if version != 1:
        raise Unclear(f"its tree of arguments has version {version}")
    return _tree(tree, 0)


def _tree(tree: Any, depth: int) -> _Spec:
    if depth > _DEEPEST:
        raise Unclear("its arguments are nested too deeply")
    kind = tree["type"]
    if kind is not None and kind not in _CONTAINERS:
        raise Unclear(f"an argument is a {kind}")
    context = json.loads(tree["context"]) if isinstance(tree["context"], str) else []
    inner = [_tree(each, depth + 1) for each in tree["children_spec"]]
    return _Spec(_CONTAINERS.get(kind), context, inner)


def _name(argument: Any) -> str:
    """Return the name of an argument; a constant has none."""
    return str(next((each["name"] for each in argument.values() if "name" in (each or ())), ""))


def _port(name: str, alias: str, argument: Any, tensors: Any) -> Port:
    tensor = tensors.get((argument.get("as_tensor") or {}).get("name"))
    if tensor is None:
        return Port(name or alias, (alias,))
    dims = tuple(int(each["as_int"]) if "as_int" in each else -1 for each in tensor["sizes"])
    return Port(name, (alias,), datatype_of(_DTYPES.get(tensor["dtype"], "")), dims)


def _most_rows(takes: Any, tensors: Any, bounds: Any) -> int:
    """Return the upper bound of the rows; 0 if there is none. The first input of any size decides."""
    for argument in takes:
        tensor = tensors.get((argument.get("as_tensor") or {}).get("name"))
        if tensor is None or not tensor["sizes"] or "as_expr" not in tensor["sizes"][0]:
            continue
        text = tensor["sizes"][0]["as_expr"]["expr_str"]
        symbol = text.split("'")[1] if text.startswith("Symbol('") else text
        most = (bounds.get(symbol) or {}).get("max_val")
        return most if isinstance(most, int) and 0 < most < 2**31 else 0
    return 0
