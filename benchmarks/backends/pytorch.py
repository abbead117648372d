"""PyTorch: the MLP of the other benchmarks, a small convolutional and a residual network, as TorchScript."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.backends.case import Case
from benchmarks.models import mlp, residual
from benchmarks.models.sample import Arrays

_SIDE = 16


class TorchCase(Case):
    backend = "pytorch"
    package = "torch"
    more = 'parameters { key: "INTRA_OP_THREAD_COUNT" value: { string_value: "1" } }\n'

    def module(self) -> Any:
        """Return a torch.nn.Module, the same in every run."""
        raise NotImplementedError

    def write(self, folder: Path) -> None:
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # torch announces that TorchScript will not be developed
            traced = torch.jit.trace(self.module().eval(), torch.ones(2, self.width))
            torch.jit.save(traced, str(folder / "model.pt"))

    def load(self, folder: Path) -> Callable[[Arrays], Arrays]:
        import torch

        torch.set_num_threads(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module: Any = torch.jit.load(str(folder / "model.pt"))

        def run(inputs: Arrays) -> Arrays:
            with torch.inference_mode():
                return {"OUTPUT0": module(torch.from_numpy(inputs["INPUT0"])).numpy()}

        return run


class TorchMlp(TorchCase):
    name = "torch_mlp"
    width, results = mlp.SIZES[0], mlp.SIZES[-1]
    most = 1024

    def module(self) -> Any:
        import torch

        layers: list[Any] = []
        for weights, bias in mlp.layers():
            layer = torch.nn.Linear(*weights.shape)
            layer.weight.data = torch.from_numpy(weights.T.copy())
            layer.bias.data = torch.from_numpy(bias)
            layers += [layer, torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])


class TorchConvolution(TorchCase):
    name = "torch_convolution"
    width, results = _SIDE * _SIDE, 10

    def module(self) -> Any:
        import torch
        from torch import nn

        torch.manual_seed(11)
        return nn.Sequential(
            nn.Unflatten(1, (1, _SIDE, _SIDE)),
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * (_SIDE // 2) ** 2, self.results),
        )


class TorchResidual(TorchCase):
    name = "torch_residual"
    width, results = residual.PIXELS, residual.CLASSES
    most = 32

    def module(self) -> Any:
        import torch
        from torch import nn
        from torch.nn import functional

        found = residual.network()

        def convolution(layer: residual.Convolution) -> Any:
            width, before, size, _ = layer.weights.shape
            made = nn.Conv2d(before, width, size, layer.stride, layer.padding, bias=False)
            made.weight.data = torch.from_numpy(layer.weights)
            return made

        class Block(nn.Module):  # type: ignore[misc]  # torch is not read
            def __init__(self, block: residual.Block):
                super().__init__()
                self.first, self.second = convolution(block.first), convolution(block.second)
                self.shortcut = convolution(block.shortcut) if block.shortcut else nn.Identity()

            def forward(self, images: Any) -> Any:
                inner = self.second(functional.relu(self.first(images)))
                return functional.relu(inner + self.shortcut(images))

        classes = nn.Linear(*found.classes.shape, bias=False)
        classes.weight.data = torch.from_numpy(found.classes.T.copy())
        return nn.Sequential(
            nn.Unflatten(1, (residual.CHANNELS, residual.SIDE, residual.SIDE)),
            convolution(found.stem),
            nn.ReLU(),
            *map(Block, found.blocks),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            classes,
        )


CASES = [TorchMlp(), TorchConvolution(), TorchResidual()]
