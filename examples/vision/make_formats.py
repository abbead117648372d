"""Write EfficientNet-Lite0 in five more formats: python examples/vision/make_formats.py [FORMAT]…

FORMAT   openvino, torchscript, exported, tensorflow or litert; without any, all whose framework is installed

It needs the packages of make_classifier.py, and openvino or tensorflow for what they write. The models go to
examples/vision/classifier, which git ignores. Each takes `pixels` and gives `logits`.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from make_classifier import FOLDER, network

# TorchScript has neither datatypes nor shapes, and other names.
TORCHSCRIPT = """\
backend: "pytorch"
max_batch_size: 16
input [ { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
output [ { name: "logits" data_type: TYPE_FP32 dims: [ 1000 ] } ]
"""
# Without the parameter OpenVINO computes in bfloat16 where the processor can.
OPENVINO = """\
max_batch_size: 16
parameters { key: "INFERENCE_PRECISION_HINT" value { string_value: "f32" } }
"""


def write_openvino(model: Any, version: Path) -> None:
    import openvino

    onnx = version.parents[1] / "efficientnet" / "1" / "model.onnx"
    if not onnx.exists():
        raise SystemExit(f"{onnx} is not there: make_classifier.py writes it")
    converted = openvino.convert_model(onnx)
    for tensor in (*converted.get_parameters(), *converted.get_results()):
        tensor.layout = openvino.Layout("N...")  # the first dimension is the batch
    openvino.save_model(converted, version / "model.xml", compress_to_fp16=False)
    (version.parent / "config.pbtxt").write_text(OPENVINO)


def write_torchscript(model: Any, version: Path) -> None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that it will not be developed further
        torch.jit.save(torch.jit.trace(model, torch.zeros(2, 3, 224, 224)), version / "model.pt")
    (version.parent / "config.pbtxt").write_text(TORCHSCRIPT)


def write_exported(model: Any, version: Path) -> None:
    import torch

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = model

        def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": self.network(pixels)}

    rows = torch.export.Dim("rows", max=16)
    example = (torch.zeros(2, 3, 224, 224),)
    program = torch.export.export(Named().eval(), example, dynamic_shapes=({0: rows},))
    torch.export.save(program, version / "model.pt2")


def write_tensorflow(model: Any, version: Path) -> None:
    import tensorflow as tf
    from to_tensorflow import Network

    converted = Network(model)
    tf.saved_model.save(converted, str(version / "model.savedmodel"), signatures=converted.logits)


def write_litert(model: Any, version: Path) -> None:
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        write_tensorflow(model, Path(folder))
        converter = tf.lite.TFLiteConverter.from_saved_model(f"{folder}/model.savedmodel")
        (version / "model.tflite").write_bytes(converter.convert())


FORMATS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {  # → framework, what writes it
    "openvino": ("openvino", write_openvino),
    "torchscript": ("torch", write_torchscript),
    "exported": ("torch", write_exported),
    "tensorflow": ("tensorflow", write_tensorflow),
    "litert": ("tensorflow", write_litert),
}


def main(formats: list[str], folder: Path = FOLDER) -> None:
    unknown = [each for each in formats if each not in FORMATS]
    if unknown:
        raise SystemExit(f"there is no format '{unknown[0]}', only {', '.join(FORMATS)}")
    model = network()
    for name, (framework, write) in FORMATS.items():
        if formats and name not in formats:
            continue
        if find_spec(framework) is None:
            print(f"{name}: not written, since {framework} is not installed")
            continue
        version = folder / f"efficientnet_{name}" / "1"
        version.mkdir(parents=True, exist_ok=True)
        write(model, version)
        print(f"{name}: {version}")


if __name__ == "__main__":
    main(sys.argv[1:])
