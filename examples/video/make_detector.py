"""Train the detector of this folder's film, and write it as ONNX: python examples/video/make_detector.py

It takes some minutes on one core, and needs torch and onnx. The result is in the repository. The output is
that of YOLO from version 8: centre and size of a box, and a score for each class, for each place of a grid.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
import torch
from scene import KINDS, WIDTH, scene
from torch import nn

FILE = Path(__file__).parent / "models" / "detect" / "1" / "model.onnx"
ACROSS, DOWN = 256, 192  # of the input, in pixels
STRIDE = 8  # pixels from place to place of the grid
SCALE = ACROSS / WIDTH
SIDE = 96  # of the pictures for training, in pixels of the input
_SPREAD = 1.0  # of a target score around the middle of a box, in places
_NEAR = 1.5  # places from the middle that learn the box


class Detector(nn.Module):
    """FP32[n, 3, DOWN, ACROSS] from 0 to 1, red first → FP32[n, 4 + classes, places]."""

    def __init__(self) -> None:
        super().__init__()

        def block(inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            )

        self.body = nn.Sequential(
            *(block(3, 16, 2), block(16, 32, 2), block(32, 48, 2)),
            *(block(48, 48), block(48, 48, dilation=2), block(48, 48)),
        )
        self.head = nn.Conv2d(48, 4 + len(KINDS), 1)
        nn.init.constant_(self.head.bias[:4], 2.5)
        nn.init.constant_(self.head.bias[4:], -4.0)
        y, x = torch.meshgrid(middles(DOWN), middles(ACROSS), indexing="ij")
        self.register_buffer("places", torch.stack([x, y])[None])

    def raw(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return for each place the way to the left, top, right and bottom edge, in places, and logits."""
        return self.head(self.body(pixels))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        found = self.raw(pixels)
        near, far = STRIDE * found[:, :2], STRIDE * found[:, 2:4]
        centre = self.places + (far - near) / 2
        return torch.cat([centre, near + far, torch.sigmoid(found[:, 4:])], 1).flatten(2)


def middles(size: int) -> torch.Tensor:
    return torch.arange(size // STRIDE) * STRIDE + STRIDE / 2


def batch(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return small pictures, targets FP32[n, 4 + classes, grid, grid], and where the targets have a box."""
    random = np.random.default_rng(seed)
    grid = SIDE // STRIDE
    pixels = np.empty((count, SIDE, SIDE, 3), np.float32)
    target = np.zeros((count, 4 + len(KINDS), grid, grid), np.float32)
    there = np.zeros((count, 1, grid, grid), np.float32)
    x, y = np.meshgrid(middles(SIDE).numpy(), middles(SIDE).numpy())
    size = (round(SIDE / SCALE), round(SIDE / SCALE))
    for i in range(count):
        ((picture, boxes, kinds),) = scene(seed * count + i, 1, 1 + i % 2, size=size)
        if random.random() < 0.5:  # what a codec does to edges and noise
            quality = [cv2.IMWRITE_JPEG_QUALITY, int(random.integers(40, 95))]
            picture = cv2.imdecode(cv2.imencode(".jpg", picture, quality)[1], cv2.IMREAD_COLOR)
        small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        pixels[i] = small / np.float32(255) * random.uniform(0.9, 1.1)
        for (left, top, right, bottom), kind in zip(boxes * SCALE, kinds, strict=True):
            away = np.hypot(x - (left + right) / 2, y - (top + bottom) / 2) / STRIDE
            near = away < _NEAR
            edges = np.stack([x - left, y - top, right - x, bottom - y]) / STRIDE
            target[i, :4, near] = edges[:, near].T
            there[i, 0, near] = 1
            heat = np.exp(-(away**2) / (2 * _SPREAD**2))
            heat[away == away.min()] = 1
            np.maximum(target[i, 4 + kind], heat, out=target[i, 4 + kind])
    scaled = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
    return scaled, torch.from_numpy(target), torch.from_numpy(there)


def loss_of(found: torch.Tensor, target: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """Return the error of boxes near the middles, and the focal loss of scores as in CornerNet."""
    box = ((found[:, :4] - target[:, :4]).abs() * there).sum() / there.sum()
    probability = torch.sigmoid(found[:, 4:]).clamp(1e-4, 1 - 1e-4)
    heat = target[:, 4:]
    is_middle = (heat == 1).float()
    hit = is_middle * (1 - probability) ** 2 * probability.log()
    miss = (1 - is_middle) * (1 - heat) ** 4 * probability**2 * (1 - probability).log()
    return 4 * box - (hit + miss).sum() / is_middle.sum()


def train(steps: int, count: int) -> Detector:
    torch.manual_seed(0)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    for step in range(steps):
        pixels, target, there = batch(step, count)
        loss = loss_of(model.raw(pixels), target, there)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--file", type=Path, default=FILE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = train(options.steps, options.batch)
    options.file.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        model,
        (torch.zeros(1, 3, DOWN, ACROSS),),
        options.file,
        input_names=["pixels"],
        output_names=["predictions"],
        dynamic_axes={"pixels": {0: "rows"}, "predictions": {0: "rows"}},
        dynamo=False,
    )
    print(f"{options.file}: {options.file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
