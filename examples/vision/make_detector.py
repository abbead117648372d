"""Train a small detector of shapes, and write it as ONNX: python examples/vision/make_detector.py

It takes about a minute on one core, and needs torch and onnx. The result is in the repository. The output is
that of YOLO from version 8: centre and size of a box, and a score for each class, for each place of a grid.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from shapes import KINDS, SIDE, video
from torch import nn

FILE = Path(__file__).parent / "models" / "shapes" / "1" / "model.onnx"
STRIDE = 8  # pixels from place to place of the grid


class Detector(nn.Module):
    """FP32[n, 3, SIDE, SIDE] from 0 to 1, red first → FP32[n, 4 + classes, places]."""

    def __init__(self) -> None:
        super().__init__()

        def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            )

        self.body = nn.Sequential(
            block(3, 12, 2), block(12, 24, 2), block(24, 32, 2), block(32, 32, 1), block(32, 32, 1)
        )
        self.head = nn.Conv2d(32, 4 + len(KINDS), 1)
        nn.init.constant_(self.head.bias[4:], -4.0)
        grid = torch.arange(SIDE // STRIDE) * STRIDE + STRIDE / 2
        y, x = torch.meshgrid(grid, grid, indexing="ij")
        self.register_buffer("places", torch.stack([x, y])[None])

    def raw(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(pixels))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        found = self.raw(pixels)
        centre = self.places + STRIDE * found[:, :2]
        size = torch.exp(found[:, 2:4].clamp(-3, 3)) * SIDE / 6
        scores = torch.sigmoid(found[:, 4:])
        return torch.cat([centre, size, scores], 1).flatten(2)


def batch(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return pixels, targets FP32[n, 4 + classes, grid, grid], and where the targets have a box."""
    side = SIDE // STRIDE
    pixels = np.empty((count, SIDE, SIDE, 3), np.uint8)
    target = np.zeros((count, 4 + len(KINDS), side, side), np.float32)
    there = np.zeros((count, 1, side, side), np.float32)
    for i in range(count):
        number = 1 + (seed + i) % 6
        ((pixels[i], boxes, kinds, _),) = video(seed * 1000 + i, 1, number)
        # What is drawn later hides what was drawn before.
        for box, kind in zip(boxes, kinds, strict=True):
            x, y = (box[:2] + box[2:]) / 2
            column, row = (int(min(each // STRIDE, side - 1)) for each in (x, y))
            size = np.log(np.maximum(box[2:] - box[:2], 1) * 6 / SIDE)
            target[i, :, row, column] = 0
            target[i, :2, row, column] = (x / STRIDE - column - 0.5, y / STRIDE - row - 0.5)
            target[i, 2:4, row, column] = size
            target[i, 4 + kind, row, column] = 1
            there[i, 0, row, column] = 1
    scaled = torch.from_numpy(pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    return scaled, torch.from_numpy(target), torch.from_numpy(there)


def train(steps: int, count: int) -> Detector:
    torch.manual_seed(0)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=steps)
    for step in range(steps):
        pixels, target, there = batch(step, count)
        found = model.raw(pixels)
        box = ((found[:, :4] - target[:, :4]).abs() * there).sum()
        probability = torch.sigmoid(found[:, 4:])
        wrong = torch.where(target[:, 4:] > 0, 1 - probability, probability)
        score = (wrong**2 * nn.functional.binary_cross_entropy_with_logits(
            found[:, 4:], target[:, 4:], reduction="none"
        )).sum()  # fmt: skip
        loss = (box + 2 * score) / there.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = train(options.steps, options.batch)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        model,
        (torch.zeros(1, 3, SIDE, SIDE),),
        FILE,
        input_names=["pixels"],
        output_names=["predictions"],
        dynamic_axes={"pixels": {0: "rows"}, "predictions": {0: "rows"}},
        dynamo=False,
    )
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
