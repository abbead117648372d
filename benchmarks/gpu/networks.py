"""Two networks in FP16 with random weights, and their files in each format of backend-pytorch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

FORMATS = ("module", "torchscript", "exported", "aotinductor")
MOST_ROWS = 64
DEVICE = "cuda"
SIDE, CLASSES = 224, 1000
TOKENS, WIDTH, HEADS, WORDS = 128, 768, 12, 30522


class Bottleneck(nn.Module):  # type: ignore[misc]  # torch is not read
    def __init__(self, width: int, inner: int, stride: int):
        super().__init__()
        outer = 4 * inner
        self.main = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, outer, 1, bias=False),
            nn.BatchNorm2d(outer),
        )
        self.beside: nn.Module = nn.Identity()
        if stride != 1 or width != outer:
            self.beside = nn.Sequential(
                nn.Conv2d(width, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x: Any) -> Any:
        return nn.functional.relu(self.main(x) + self.beside(x))


class ResNet(nn.Module):  # type: ignore[misc]
    """Images [n, 3, SIDE, SIDE] → classes [n, CLASSES]: the shape of ResNet-50."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        layers.append(nn.MaxPool2d(3, 2, 1))
        width = 64
        for inner, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                layers.append(Bottleneck(width, inner, stride if i == 0 else 1))
                width = 4 * inner
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(self.before(x)).unflatten(-1, [3, HEADS, WIDTH // HEADS]).unbind(2)
        attention = nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        )
        x = x + self.out(attention.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.between(x))))


class Encoder(nn.Module):  # type: ignore[misc]
    """Token ids [n, TOKENS] → embeddings [n, WIDTH]: the shape of BERT base."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(12)))

    def forward(self, x: Any) -> Any:
        return self.blocks(self.words(x)).mean(1)


@dataclass(frozen=True)
class Network:
    """A network, its configuration, and how its inputs are made.

    make     () → the module
    sample   rows → a tensor in host memory
    inputs   fields of its input and output in config.pbtxt
    """

    name: str
    make: Callable[[], Any]
    sample: Callable[[int], Any]
    inputs: str

    def module(self, device: str) -> Any:
        """Return the module with the same weights in each call, in FP16 and evaluation mode."""
        torch.manual_seed(7)
        return self.make().eval().half().to(device)


NETWORKS = (
    Network(
        "resnet50",
        ResNet,
        lambda rows: torch.rand(rows, 3, SIDE, SIDE).half(),
        f'input [ {{ name: "INPUT__0" data_type: TYPE_FP16 dims: [ 3, {SIDE}, {SIDE} ] }} ]\n'
        f'output [ {{ name: "OUTPUT__0" data_type: TYPE_FP16 dims: [ {CLASSES} ] }} ]\n',
    ),
    Network(
        "encoder",
        Encoder,
        lambda rows: torch.randint(0, WORDS, (rows, TOKENS)),
        f'input [ {{ name: "INPUT__0" data_type: TYPE_INT64 dims: [ {TOKENS} ] }} ]\n'
        f'output [ {{ name: "OUTPUT__0" data_type: TYPE_FP16 dims: [ {WIDTH} ] }} ]\n',
    ),
)
BY_NAME = {each.name: each for each in NETWORKS}
MODULE = """import torch
from benchmarks.gpu.networks import BY_NAME, {kind}


class Served({kind}):
    def __init__(self):
        torch.manual_seed(7)
        super().__init__()
        self.half()
"""


def file_of(network: Network, kind: str, folder: Path, device: str) -> Path:
    """Write a network as a file of one of FORMATS into a folder, and return the file.

    A package of AOTInductor that is there already is kept: it takes a minute to compile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / {"module": "model.py", "torchscript": "model.pt"}.get(kind, "model.pt2")
    if file.exists():
        return file
    if kind == "module":
        file.write_text(MODULE.format(kind=network.make.__name__))
        return file
    module, sample = network.module(device), network.sample(2).to(device)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # torch announces that TorchScript will not be developed
        if kind == "torchscript":
            torch.jit.save(torch.jit.trace(module, sample), str(file))
            return file
    rows = torch.export.Dim("rows", min=1, max=MOST_ROWS)
    with torch.no_grad():
        program = torch.export.export(module, (sample,), dynamic_shapes=({0: rows},))
        if kind == "exported":
            torch.export.save(program, file)
        else:
            torch._inductor.aoti_compile_and_package(program, package_path=str(file))
    return file


def loaded(network: Network, kind: str, file: Path, device: str) -> Callable[[Any], Any]:
    """Return a file's program as a function of one tensor, as a bare loop calls it."""
    if kind == "module":
        return network.module(device)  # type: ignore[no-any-return]
    if kind == "torchscript":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.load(str(file), map_location=device)  # type: ignore[no-any-return]
    if kind == "exported":
        return torch.export.load(file).module()  # type: ignore[no-any-return]
    return torch._inductor.aoti_load_package(str(file), run_single_threaded=True)  # type: ignore[no-any-return]


if __name__ == "__main__":  # python -m benchmarks.gpu.networks FOLDER DEVICE: compile the packages
    for each in NETWORKS:
        file_of(each, "aotinductor", Path(sys.argv[1]) / each.name, sys.argv[2])
