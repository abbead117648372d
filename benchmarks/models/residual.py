"""A residual network of 20 layers for images of 32 by 32: its weights, its ONNX file.

The shape is that of ResNet-20 (K. He et al., "Deep residual learning for image recognition", 2016, section
4.2), with batch normalisation folded into the convolutions, and a convolution where a shortcut changes the
shape. It needs 41 million multiplications per image, the MLP 85 thousand: still a small network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CHANNELS, SIDE, CLASSES = 3, 32, 10
WIDTHS, BLOCKS = (16, 32, 64), 3
PIXELS = CHANNELS * SIDE * SIDE
OPSET = 17
IR_VERSION = 8  # with opset 17, for every onnxruntime since 1.12

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Convolution:
    """weights FP32[out, in, size, size], padded so that stride 1 keeps the image's size."""

    weights: Array
    stride: int = 1

    @property
    def padding(self) -> int:
        return int(self.weights.shape[2]) // 2


@dataclass(frozen=True)
class Block:
    """ReLU(second(ReLU(first(x))) + shortcut(x)); no shortcut is x itself."""

    first: Convolution
    second: Convolution
    shortcut: Convolution | None


@dataclass(frozen=True)
class Network:
    """ReLU(stem) → blocks → the mean of each channel → @ classes, FP32[channels, results]."""

    stem: Convolution
    blocks: tuple[Block, ...]
    classes: Array


def network() -> Network:
    """Return the network, the same in every run."""
    random = np.random.default_rng(11)

    def convolution(width: int, before: int, size: int, stride: int = 1) -> Convolution:
        shape = (width, before, size, size)
        scale = np.float32(np.sqrt(2 / (before * size * size)))
        return Convolution(random.standard_normal(shape, np.float32) * scale, stride)

    def blocks() -> Iterator[Block]:
        before = WIDTHS[0]
        for width in WIDTHS:
            for _ in range(BLOCKS):
                stride = 1 if before == width else 2
                yield Block(
                    convolution(width, before, 3, stride),
                    convolution(width, width, 3),
                    None if before == width else convolution(width, before, 1, stride),
                )
                before = width

    stem = convolution(WIDTHS[0], CHANNELS, 3)
    return Network(stem, tuple(blocks()), random.standard_normal((WIDTHS[-1], CLASSES), np.float32))


class _Graph:
    """An ONNX graph under construction."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper: Any = helper
        self._numpy_helper: Any = numpy_helper
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, array: Array) -> str:
        name = f"constant{len(self.initializers)}"
        self.initializers.append(self._numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        result = result or f"value{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, list(inputs), [result], **attributes))
        return result

    def convolved(self, images: str, layer: Convolution) -> str:
        return self.node(
            "Conv",
            images,
            self.constant(layer.weights),
            pads=[layer.padding] * 4,
            strides=[layer.stride] * 2,
        )


def write(path: Path) -> None:
    """Write the ONNX file; INPUT0 FP32[n, 3072] → OUTPUT0 FP32[n, 10]. Needs the package onnx."""
    from onnx import TensorProto, helper, save

    found, graph = network(), _Graph()
    shape = np.array([-1, CHANNELS, SIDE, SIDE], np.int64)
    images = graph.node("Reshape", "INPUT0", graph.constant(shape))
    images = graph.node("Relu", graph.convolved(images, found.stem))
    for block in found.blocks:
        inner = graph.node("Relu", graph.convolved(images, block.first))
        beside = graph.convolved(images, block.shortcut) if block.shortcut else images
        images = graph.node("Relu", graph.node("Add", graph.convolved(inner, block.second), beside))
    means = graph.node("Flatten", graph.node("GlobalAveragePool", images))
    graph.node("MatMul", means, graph.constant(found.classes), result="OUTPUT0")
    made = helper.make_graph(
        graph.nodes,
        "residual",
        [helper.make_tensor_value_info("INPUT0", TensorProto.FLOAT, ["n", PIXELS])],
        [helper.make_tensor_value_info("OUTPUT0", TensorProto.FLOAT, ["n", CLASSES])],
        graph.initializers,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    path.parent.mkdir(parents=True, exist_ok=True)
    save(model, str(path))
