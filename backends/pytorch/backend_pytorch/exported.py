"""A Program from a file of torch.export, which has datatypes, shapes and names.

files ─► [open_exported] ─► naming, complete, instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from backend_pytorch.files import cannot_load
from backend_pytorch.framework import first_line
from backend_pytorch.pickles import refuse_pickles
from backend_pytorch.program import Port, Program, datatype_of
from backend_pytorch.structure import children, input_names, output_names, paths
from core.errors import CoreError


class ExportedModule(Program):
    """A graph of torch.export, which torch runs operation by operation."""

    kind = "torch.export"

    def __init__(self, program: Any, model: str):
        self._module = program.module()
        self._spec = program.call_spec.in_spec
        placeholders, results = _values(program)
        self._in_order = _in_order(self._spec)
        self.takes = _inputs(program, placeholders, model)
        self.gives = _outputs(program, results, model)
        self.most_rows = _most_rows(program, placeholders)
        signature = program.graph_signature
        self.writes_inputs = bool(signature.user_inputs_to_mutate)
        self.keeps_outputs = bool(signature.buffers_to_mutate)

    def tensors(self) -> Iterator[Any]:
        yield from self._module.parameters()
        yield from self._module.buffers()

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any]:
        if self._in_order:
            result = self._module(*arguments)
        else:
            args, kwargs = pytree.tree_unflatten(list(arguments), self._spec)
            result = self._module(*args, **kwargs)
        if type(result) is torch.Tensor:
            return [result]
        found: list[Any] = pytree.tree_leaves(result)
        return found


def open_exported(path: Path, device: Any, model: str) -> ExportedModule:
    """Load a file. Takes long for large files.

    device   a torch.device, None to keep the devices of the file
    Raises CoreError with the file, the reason and advice.
    """
    try:
        refuse_pickles(path, model)
        program = torch.export.load(str(path))
        if device is not None:
            program = _moved(program, device)
        return ExportedModule(program, model)
    except CoreError:
        raise
    except Exception as error:
        raise cannot_load(
            path,
            model,
            first_line(error).splitlines()[0],
            "copy the file again, or export it again with torch.export.save and this torch",
        ) from error


def _moved(program: Any, device: Any) -> Any:
    """Return the program on `device`; the same program if that is the CPU and all its tensors are there."""
    there = {each.device.type for each in program.state_dict.values()}
    if device.type == "cpu" and there <= {"cpu"}:
        return program
    from torch.export.passes import move_to_device_pass

    return move_to_device_pass(program, device)


def _in_order(spec: Any) -> bool:
    """Return whether all arguments are positional tensors, not nested in containers."""
    args, kwargs = children(spec)
    return not kwargs.num_leaves and all(each.is_leaf() for each in children(args))


def _values(program: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return {placeholder name: example}, and the examples of the user's outputs in order."""
    placeholders: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            placeholders[node.name] = node.meta.get("val")
        elif node.op == "output":
            for each in node.args[0]:
                results[getattr(each, "name", "")] = getattr(each, "meta", {}).get("val")
    return placeholders, [results.get(name) for name in program.graph_signature.user_outputs]


def _inputs(program: Any, placeholders: dict[str, Any], model: str) -> list[Port]:
    names = list(program.graph_signature.user_inputs)
    aliases = input_names(program.call_spec.in_spec, model)
    return [
        _port(str(name), (alias,), placeholders.get(name))
        for name, alias in zip(names, aliases, strict=True)
    ]


def _outputs(program: Any, results: list[Any], model: str) -> list[Port]:
    """Return the outputs, named by key if the program returns a dict of tensors, else OUTPUT__0, …"""
    spec = program.call_spec.out_spec
    names = output_names(spec, model)
    ways = paths(spec, model)
    if spec.type is dict and all(len(way) == 1 for way in ways):
        plain = [way[0] for way in ways]
    else:
        plain = [f"OUTPUT__{i}" for i in range(len(ways))]
    return [
        _port(name, (alias,), value)
        for name, alias, value in zip(plain, names, results, strict=True)
    ]


def _port(name: str, aliases: tuple[str, ...], value: Any) -> Port:
    if not isinstance(value, torch.Tensor):
        return Port(name, aliases)
    dims = tuple(size if isinstance(size, int) else -1 for size in value.shape)
    return Port(name, aliases, datatype_of(value.dtype), dims)


def _most_rows(program: Any, placeholders: dict[str, Any]) -> int:
    """Return the upper bound of the rows in an exported program; 0 if it has none.

    The first input whose first dimension is dynamic decides.
    """
    for name in program.graph_signature.user_inputs:
        value = placeholders.get(name)
        if isinstance(value, torch.Tensor) and value.dim() and not isinstance(value.shape[0], int):
            symbol = value.shape[0].node.expr
            bounds = program.range_constraints.get(symbol)
            upper = getattr(bounds, "upper", None)
            if upper is not None and str(upper).isdigit():
                return int(upper) if int(upper) < 2**31 else 0
            return 0
    return 0
