"""Find whether a TorchScript program writes to its arguments, or to its own tensors and attributes.

graph of forward ─► [effects_of] ─► whether instances share the program, and copies before or after a run.

torch's own alias analysis treats every attribute as an alias of every argument. This analysis follows an
in-place operation back through views, and treats a call that it cannot follow as a write to everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Operations whose result is, or may be, the memory of their first argument.
_VIEWS = frozenset(
    """
    view reshape select slice narrow t transpose permute squeeze unsqueeze expand expand_as flatten unflatten
    contiguous detach alias to type_as float double half bool int long view_as reshape_as chunk unbind split
    split_with_sizes tensor_split unfold diagonal real imag movedim swapaxes swapdims T mT cpu cuda dropout
    feature_dropout alpha_dropout broadcast_to atleast_1d atleast_2d atleast_3d ravel
    """.split()  # noqa: SIM905 - a column of strings would be longer than the rest of this file
)
# Operations that collect tensors, or return one of a collection.
_HOLDERS = (
    "prim::ListConstruct",
    "prim::ListUnpack",
    "prim::TupleConstruct",
    "prim::TupleUnpack",
    "prim::TupleIndex",
    "prim::DictConstruct",
    "prim::unchecked_cast",
    "prim::unchecked_unwrap_optional",
    "aten::__getitem__",
    "aten::_unwrap_optional",
)
_OPAQUE = ("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "prim::fork")


@dataclass(frozen=True)
class Effects:
    """Where a program may write.

    writes_inputs   whether it may write to its arguments
    writes_itself   whether it may write to its parameters, buffers or attributes
    """

    writes_inputs: bool
    writes_itself: bool


def effects_of(module: Any) -> Effects:
    """Return the effects of `forward`. A call that is not inlined counts as writing everything."""
    training = any(each.training for each in module.modules())
    graph = module.inlined_graph
    walk = _Walk({each.debugName() for each in graph.inputs()}, training)
    walk.block(graph)
    return Effects(walk.writes_inputs, walk.writes_itself)


class _Walk:
    def __init__(self, arguments: set[str], training: bool):
        self._arguments = arguments
        self._training = training
        self.writes_inputs = False
        self.writes_itself = False

    def block(self, block: Any) -> None:
        for node in block.nodes():
            kind = node.kind()
            if kind == "prim::If":
                truth = self._truth(next(node.inputs()))
                for i, branch in enumerate(node.blocks()):
                    if truth is None or truth == (i == 0):
                        self.block(branch)
                continue
            for branch in node.blocks():
                self.block(branch)
            if kind == "prim::SetAttr":
                self.writes_itself = True
            elif kind in _OPAQUE:
                self.writes_inputs = self.writes_itself = True
            elif _writes(kind):
                self._origin(next(node.inputs()), set())

    def _origin(self, value: Any, seen: set[str]) -> None:
        """Follow a value to which an operation writes back to arguments and attributes, and record these."""
        name = value.debugName()
        if name in seen:
            return
        seen.add(name)
        node = value.node()
        kind = node.kind()
        operation = kind.partition("::")[2]
        if name in self._arguments:
            self.writes_inputs = True
        elif kind == "prim::Param":  # a variable of a loop
            self.writes_inputs = self.writes_itself = True
        elif kind == "prim::GetAttr":
            self.writes_itself = True
        elif kind in ("prim::If", "prim::Loop"):
            place = [each.debugName() for each in node.outputs()].index(name)
            for branch in node.blocks():
                outputs = list(branch.outputs())
                self._origin(outputs[place + (kind == "prim::Loop")], seen)
        elif kind in _HOLDERS:
            for each in node.inputs():
                self._origin(each, seen)
        elif operation in _VIEWS or _writes(kind):
            self._origin(next(node.inputs()), seen)

    def _truth(self, value: Any) -> bool | None:
        """Return the value of a condition that is known before a run, such as `training`; else None."""
        node = value.node()
        kind = node.kind()
        if kind == "prim::Constant" and node.hasAttribute("value"):
            return bool(node.i("value")) if node.kindOf("value") == "i" else None
        if kind == "prim::GetAttr":
            return False if node.s("name") == "training" and not self._training else None
        if kind == "aten::__not__":
            inner = self._truth(next(node.inputs()))
            return None if inner is None else not inner
        if kind == "prim::If":
            truth = self._truth(next(node.inputs()))
            if truth is None:
                return None
            place = [each.debugName() for each in node.outputs()].index(value.debugName())
            return self._truth(list(list(node.blocks())[0 if truth else 1].outputs())[place])
        return None


def _writes(kind: str) -> bool:
    """Return whether an operation writes to its first argument: its name ends with one underscore."""
    operation = kind.partition("::")[2]
    return (operation.endswith("_") and not operation.endswith("__")) or operation == "_set_item"
