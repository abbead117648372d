"""Write small models as .tflite files, for tests.

GraphWriter ─► bytes.  A graph of constants, inputs, operators and outputs, in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from backend_litert.tensors import TYPE_NUMBERS

_IDENTIFIER = b"TFL3"
_CODES = schema.BuiltinOperator


class GraphWriter:
    """One model, with one graph or several.

    >>> graph = GraphWriter()
    >>> x = graph.input("x", "float32", (-1, 3))
    >>> graph.output(graph.add(x, x, "y"))
    >>> pathlib.Path("model.tflite").write_bytes(graph.bytes())
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = [schema.BufferT()]  # the first one stands for no data
        self._tensors: list[Any] = []
        self._codes: list[Any] = []
        self._operators: list[Any] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._signatures: list[Any] = []
        self._graphs: list[Any] = []  # those that are finished

    def input(
        self,
        name: str,
        dtype: str,
        dims: Sequence[int],
        scale: tuple[float, int] | None = None,
    ) -> int:
        """Add an input; return its number.

        dtype   name of a datatype of numpy, or "string"
        dims    -1 for any size
        scale   (scale, zero point) of a quantised tensor
        """
        number = self._tensor(name, dtype, dims, scale=scale)
        self._inputs.append(number)
        return number

    def constant(self, name: str, array: np.ndarray) -> int:
        """Add a constant; return its number."""
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(array.tobytes(), np.uint8)
        self._buffers.append(buffer)
        return self._tensor(name, array.dtype.name, array.shape, buffer=len(self._buffers) - 1)

    def handle(self, name: str) -> int:
        """Add a variable that lives longer than a run; return the number of its handle."""
        result = self._tensor(name, "resource", (1,))
        options = schema.VarHandleOptionsT()
        options.container, options.sharedName = "", name
        kind = schema.BuiltinOptions.VarHandleOptions
        self._operator(_CODES.VAR_HANDLE, [], [result], kind, options)
        return result

    def output(self, number: int) -> None:
        """Make a tensor an output."""
        self._outputs.append(number)

    def add(self, a: int, b: int, name: str) -> int:
        """Add the operator a + b; return the number of its result, like `a`."""
        result = self._like(a, name)
        self._operator(
            _CODES.ADD, [a, b], [result], schema.BuiltinOptions.AddOptions, schema.AddOptionsT()
        )
        return result

    def layer(self, x: int, weights: np.ndarray, bias: np.ndarray, name: str, *, relu: bool) -> int:
        """Add a layer of a network; return the number of its result.

        weights, bias   FP32[m, n] and FP32[m]: rows of n elements become rows of m
        """
        result = self._tensor(name, "float32", [*self._dims(x)[:-1], len(bias)])
        options = schema.FullyConnectedOptionsT()
        if relu:
            options.fusedActivationFunction = schema.ActivationFunctionType.RELU
        constants = [
            self.constant(f"{name}_weights", weights),
            self.constant(f"{name}_bias", bias),
        ]
        kind = schema.BuiltinOptions.FullyConnectedOptions
        self._operator(_CODES.FULLY_CONNECTED, [x, *constants], [result], kind, options)
        return result

    def gather_rows(self, x: int, index: int, name: str) -> int:
        """Add the operator that takes x[row, index[row]] of each row; return the number of its result."""
        result = self._tensor(name, self._dtype(x), self._dims(index))
        options = schema.GatherOptionsT()
        options.axis, options.batchDims = 1, 1
        self._operator(
            _CODES.GATHER, [x, index], [result], schema.BuiltinOptions.GatherOptions, options
        )
        return result

    def reshape(self, x: int, dims: Sequence[int], name: str) -> int:
        """Add the operator that gives x other dims, -1 for what is left; return the number of its result."""
        shape = self.constant(f"{name}_dims", np.array(dims, np.int32))
        result = self._tensor(name, self._dtype(x), dims)
        self._tensors[result].quantization = self._tensors[x].quantization
        options = schema.ReshapeOptionsT()
        options.newShape = list(dims)
        self._operator(
            _CODES.RESHAPE, [x, shape], [result], schema.BuiltinOptions.ReshapeOptions, options
        )
        return result

    def custom(self, x: int, code: str, name: str) -> int:
        """Add a custom operator; return the number of its result."""
        result = self._like(x, name)
        self._operator(_CODES.CUSTOM, [x], [result], 0, None, custom=code)
        return result

    def signature(self, key: str, inputs: dict[str, int], outputs: dict[str, int]) -> None:
        """Add a signature: names for tensors."""
        found = schema.SignatureDefT()
        found.signatureKey, found.subgraphIndex = key, len(self._graphs)
        found.inputs = [_named(name, number) for name, number in inputs.items()]
        found.outputs = [_named(name, number) for name, number in outputs.items()]
        self._signatures.append(found)

    def next_graph(self) -> None:
        """Begin another graph of the file: what follows belongs to it."""
        graph = schema.SubGraphT()
        graph.tensors, graph.operators = self._tensors, self._operators
        graph.inputs, graph.outputs = self._inputs, self._outputs
        graph.name = f"graph{len(self._graphs)}"
        self._graphs.append(graph)
        self._tensors, self._operators, self._inputs, self._outputs = [], [], [], []

    def bytes(self) -> bytes:
        """Return the content of the file. The writer cannot be used any more."""
        self.next_graph()
        model = schema.ModelT()
        model.version, model.subgraphs, model.buffers = 3, self._graphs, self._buffers
        model.operatorCodes, model.signatureDefs = self._codes, self._signatures
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), _IDENTIFIER)
        return bytes(builder.Output())

    def _tensor(
        self,
        name: str,
        dtype: str,
        dims: Sequence[int],
        buffer: int = 0,
        scale: tuple[float, int] | None = None,
    ) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.buffer = name, TYPE_NUMBERS[dtype], buffer
        tensor.shape = [1 if dim == -1 else dim for dim in dims]
        if -1 in dims:
            tensor.shapeSignature = list(dims)
        if scale is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [scale[0]], [scale[1]]
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _like(self, number: int, name: str) -> int:
        like = self._tensors[number]
        result = self._tensor(name, self._dtype(number), self._dims(number))
        self._tensors[result].quantization = like.quantization
        return result

    def _dtype(self, number: int) -> str:
        type_ = self._tensors[number].type
        return next(name for name, each in TYPE_NUMBERS.items() if each == type_)

    def _dims(self, number: int) -> list[int]:
        tensor = self._tensors[number]
        return list(tensor.shapeSignature or tensor.shape)

    def _operator(
        self,
        code: int,
        inputs: list[int],
        outputs: list[int],
        kind: int,
        options: Any,
        custom: str | None = None,
    ) -> None:
        entry = schema.OperatorCodeT()
        entry.builtinCode, entry.deprecatedBuiltinCode = code, min(code, 127)
        entry.customCode, entry.version = custom, 1
        self._codes.append(entry)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self._codes) - 1
        operator.inputs, operator.outputs = inputs, outputs
        operator.builtinOptionsType, operator.builtinOptions = kind, options
        self._operators.append(operator)


def _named(name: str, number: int) -> Any:
    entry = schema.TensorMapT()
    entry.name, entry.tensorIndex = name, number
    return entry
