"""Read the XML file of OpenVINO's IR without OpenVINO: inputs, outputs, opsets, and the size of the weights.

model.xml ─► [read_xml] ─► XmlFile.  The file is read once, from its beginning to its end; document types and
their entities are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from backend_openvino.tensors import Port, Ports, by_type_name, ports_from

_DEEPEST = 100
_MOST_LAYERS = 1_000_000
_PRECISIONS = {"BOOL": "boolean", "STRING": "string", "FP16": "f16", "FP32": "f32", "FP64": "f64"}
_NAMES = re.compile(r"(?:[^,\\]|\\.)+")


class Damaged(ValueError):
    """The file is no model of OpenVINO."""


@dataclass
class _End:
    """An input or output of a layer, as the file has it."""

    precision: str = ""
    names: str = ""
    dims: list[str] = field(default_factory=list)
    layout: str = ""


@dataclass
class _Layer:
    id: str
    name: str
    type: str
    data: dict[str, str] = field(default_factory=dict)
    ends: dict[str, _End] = field(default_factory=dict)  # by the id of the port
    output_names: str = ""


@dataclass
class XmlFile:
    """What the file says.

    version    of the IR
    opsets     versions of the operators: "opset13"
    weights    bytes that the .bin file must have
    """

    version: int
    ports: Ports
    opsets: set[str]
    weights: int


class _Reader:
    def __init__(self) -> None:
        self.layers: list[_Layer] = []
        self.edges: dict[tuple[str, str], tuple[str, str]] = {}
        self.version = ""
        self.opsets: set[str] = set()
        self.weights = 0
        self._path: list[str] = []
        self._port = ""
        self._bodies = 0  # of loops: their layers are no inputs and outputs of the model

    def start(self, tag: str, given: Mapping[str, str]) -> None:
        self._path.append(tag)
        if len(self._path) > _DEEPEST:
            raise Damaged(f"its elements are nested more than {_DEEPEST} deep")
        if len(self._path) == 1:
            if tag != "net":
                raise Damaged(f"it begins with <{tag}>, a model of OpenVINO begins with <net>")
            self.version = given.get("version", "")
        elif tag in ("body", "then_body", "else_body"):
            self._bodies += 1
        elif tag == "layer":
            self._layer(given)
        elif tag == "data":
            self._data(given)
        elif self._bodies:
            return
        elif tag == "port" and self.layers:
            self._port = given.get("id", "")
            end = _End(given.get("precision", ""), given.get("names", ""))
            self.layers[-1].ends[self._port] = end
        elif tag == "edge":
            source = given.get("from-layer", ""), given.get("from-port", "")
            self.edges[given.get("to-layer", ""), given.get("to-port", "")] = source
        elif tag == "attribute" and given.get("name") == "layout" and self._port:
            self.layers[-1].ends[self._port].layout = given.get("layout", "")

    def end(self, tag: str) -> None:
        self._path.pop()
        self._bodies -= tag in ("body", "then_body", "else_body")

    def text(self, content: str) -> None:
        if self._path[-1] == "dim" and not self._bodies and self.layers and self._port:
            dims = self.layers[-1].ends[self._port].dims
            if content.strip() and len(dims) < 64:
                dims.append(content.strip())

    def _layer(self, given: Mapping[str, str]) -> None:
        if (version := given.get("version", "")).startswith("opset"):
            self.opsets.add(version)
        if self._bodies:
            return
        if len(self.layers) >= _MOST_LAYERS:
            raise Damaged(f"it has more than {_MOST_LAYERS} layers")
        self._port = ""
        layer = _Layer(given.get("id", ""), given.get("name", ""), given.get("type", ""))
        layer.output_names = given.get("output_names", "")
        self.layers.append(layer)

    def _data(self, given: Mapping[str, str]) -> None:
        offset, size = given.get("offset", ""), given.get("size", "")
        if all(each.isascii() and each.isdigit() and len(each) < 19 for each in (offset, size)):
            self.weights = max(self.weights, int(offset) + int(size))
        if not self._bodies and self.layers:
            self.layers[-1].data.update(given)

    def found(self) -> XmlFile:
        by_id = {each.id: each for each in self.layers}
        inputs = [each for each in self.layers if each.type == "Parameter"]
        outputs = [each for each in self.layers if each.type == "Result"]
        if not outputs or not self.version.isdigit():
            raise Damaged("it has no outputs" if not outputs else "it has no version")
        return XmlFile(
            int(self.version[:4]),
            ports_from(
                tuple(_input(each, index) for index, each in enumerate(inputs)),
                tuple(self._output(each, index, by_id) for index, each in enumerate(outputs)),
            ),
            self.opsets,
            self.weights,
        )

    def _output(self, layer: _Layer, index: int, by_id: Mapping[str, _Layer]) -> Port:
        """Return an output. Without sizes it may be a scalar, or of any rank: its rank is unknown."""
        port, end = next(iter(layer.ends.items()), ("", _End()))
        source, out = self.edges.get((layer.id, port), ("", ""))
        producer = by_id[source].ends.get(out, _End()) if source in by_id else _End()
        precision = end.precision or producer.precision
        dims = tuple(_size(each) for each in end.dims) or None
        names = layer.output_names or producer.names
        layout = end.layout or producer.layout
        kind = _PRECISIONS.get(precision, precision.lower())
        return _made(names, layer.name, index, kind, dims, layout)


def _input(layer: _Layer, index: int) -> Port:
    kind, text = layer.data.get("element_type", ""), layer.data.get("shape", "")
    dims = None if "..." in text else tuple(_size(each) for each in text.split(",") if each.strip())
    end = next(iter(layer.ends.values()), _End())
    return _made(layer.output_names or end.names, layer.name, index, kind, dims, end.layout)


def _made(
    names: str, name: str, index: int, kind: str, dims: tuple[int, ...] | None, layout: str
) -> Port:
    each = tuple(sorted(part.replace("\\,", ",") for part in _NAMES.findall(names)))
    return Port(each or (name,), index, kind, by_type_name(kind), dims, "N" in layout)


def _size(text: str) -> int:
    """Return a size; -1 for any, such as "?", "-1" and "1..8"."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def read_xml(path: Path) -> XmlFile:
    """Return what an XML file says. Raises Damaged if it is no model, OSError if it cannot be read."""
    reader, parser = _Reader(), expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse
    parser.buffer_text = True
    with path.open("rb") as file:
        try:
            parser.ParseFile(file)
        except expat.ExpatError as error:
            raise Damaged(str(error)) from None
    return reader.found()


def _refuse(*given: Any) -> None:
    raise Damaged("it has a document type, which no model of OpenVINO has")
