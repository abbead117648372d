"""One small convolutional network, saved in four ways: python examples/make_convolution.py [FOLDER]

Digits of 8 x 8 grey values from 0 to 16 → the probability of each digit. FOLDER, by default
examples/convolution/models, becomes a repository with

    convolution_torchscript   model.pt, with a configuration: TorchScript knows neither datatypes nor shapes
    convolution_exported      model.pt2 of torch.export, without any configuration
    convolution_onnx          model.onnx, without any configuration
    convolution_openvino      model.xml and model.bin of OpenVINO (IR), with a configuration of one line

Trained on what scikit-learn carries, with a fixed seed, in a few seconds. Needs torch, onnx and openvino.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import openvino
import torch
from sklearn import datasets
from torch import nn

FOLDER = Path(__file__).parent / "convolution" / "models"
TRAINING = 1500  # of the 1,797 digits; the others are for clients
EPOCHS = 6
CONFIG = """\
backend: "pytorch"
max_batch_size: 64
input [ { name: "pixels" data_type: TYPE_FP32 dims: [ 8, 8 ] } ]
output [ { name: "probabilities__0" data_type: TYPE_FP32 dims: [ 10 ] } ]
dynamic_batching { max_queue_delay_microseconds: 250 }
"""

# Without it OpenVINO computes in bfloat16 where the processor can, and gives other digits than the other two.
OPENVINO_CONFIG = """\
parameters { key: "INFERENCE_PRECISION_HINT" value { string_value: "f32" } }
"""


class Convolution(nn.Module):
    """pixels FP32[n, 8, 8] → probabilities FP32[n, 10]"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
        )
        self.classes = nn.Linear(32 * 4 * 4, 10)

    def scores(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.classes(self.features(pixels.unsqueeze(1) / 16).flatten(1))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.scores(pixels).softmax(1)


def trained() -> Convolution:
    """The network; the same for the same versions."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums in the same order on every machine
    data = datasets.load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)
    digits = torch.tensor(data.target)
    network = Convolution()
    optimizer = torch.optim.Adam(network.parameters(), 4e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(TRAINING).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network.scores(images[rows]), digits[rows]).backward()
            optimizer.step()
    network.eval()
    with torch.inference_mode():
        right = network(images[TRAINING:]).argmax(1) == digits[TRAINING:]
    print(f"convolution: score {right.float().mean().item():.3f}")
    return network


def main(folder: Path = FOLDER) -> None:
    network = trained()
    example = torch.zeros(2, 8, 8)

    script = version(folder / "convolution_torchscript")
    exported = version(folder / "convolution_exported")
    onnx = version(folder / "convolution_onnx")
    (script.parent / "config.pbtxt").write_text(CONFIG)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # torch announces that these two will not be developed further
        torch.jit.save(torch.jit.trace(network, example), str(script / "model.pt"))
        torch.onnx.export(
            network,
            (example,),
            str(onnx / "model.onnx"),
            dynamo=False,  # the newer exporter needs more packages
            input_names=["pixels"],
            output_names=["probabilities"],
            dynamic_axes={"pixels": {0: "n"}, "probabilities": {0: "n"}},
            opset_version=17,
        )
    converted = openvino.convert_model(onnx / "model.onnx")
    ir = version(folder / "convolution_openvino")
    openvino.save_model(converted, ir / "model.xml", compress_to_fp16=False)
    (ir.parent / "config.pbtxt").write_text(OPENVINO_CONFIG)
    rows = torch.export.Dim("rows", max=64)
    program = torch.export.export(network, (example,), dynamic_shapes=({0: rows},))
    torch.export.save(program, exported / "model.pt2")


def version(model: Path) -> Path:
    folder = model / "1"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
