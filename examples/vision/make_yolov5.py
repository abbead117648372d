"""Train a small detector of the kind of YOLOv5, and write it as ONNX: python examples/vision/make_yolov5.py

It takes about a minute on one core, and needs torch and onnx. The result is in the repository. The output is
that of YOLOv5 and YOLOv7: a row for each anchor of each place of two grids, with centre and size of a box in
pixels of the input, the probability of an object, and one for each class.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from shapes import KINDS, SIDE, draw
from torch import nn

FILE = Path(__file__).parent / "yolov5" / "shapes_yolov5" / "1" / "model.onnx"
STRIDES = (8, 16)  # pixels from place to place of each grid
ANCHORS = ((10.0, 16.0, 24.0), (34.0, 50.0, 76.0))  # sides of each grid's boxes, which are squares
VALUES = 5 + len(KINDS)  # of a row
MOST_RATIO = 3.0  # between the side of a box and of an anchor that learns it


def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU()
    )


class Detector(nn.Module):
    """FP32[n, 3, SIDE, SIDE] from 0 to 1, red first → FP32[n, rows, VALUES]."""

    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.Sequential(
            block(3, 12, 2), block(12, 24, 2), block(24, 32, 2), block(32, 32, 1), block(32, 32, 1)
        )
        self.coarse = nn.Sequential(block(32, 48, 2), block(48, 48, 1), block(48, 48, 1))
        self.heads = nn.ModuleList(nn.Conv2d(width, 3 * VALUES, 1) for width in (32, 48))
        for head in self.heads:
            nn.init.constant_(head.bias.view(3, VALUES)[:, 4], -5.0)
        for level, stride in enumerate(STRIDES):
            y, x = torch.meshgrid(*[torch.arange(SIDE // stride)] * 2, indexing="ij")
            self.register_buffer(f"grid{level}", torch.stack([x, y], -1).float())
            self.register_buffer(f"anchors{level}", torch.tensor(ANCHORS[level]).view(3, 1, 1, 1))

    def raw(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """Return FP32[n, anchors, height, width, VALUES] of each grid."""
        fine = self.fine(pixels)
        maps = [
            head(each) for head, each in zip(self.heads, (fine, self.coarse(fine)), strict=True)
        ]
        return [each.unflatten(1, (3, VALUES)).permute(0, 1, 3, 4, 2) for each in maps]

    def decoded(self, raw: torch.Tensor, level: int) -> torch.Tensor:
        """Return the rows of a grid: a centre near its place, and a side of up to four anchors."""
        value = raw.sigmoid()
        grid = getattr(self, f"grid{level}")
        anchors = getattr(self, f"anchors{level}")
        centre = (value[..., :2] * 2 - 0.5 + grid) * STRIDES[level]
        size = (value[..., 2:4] * 2) ** 2 * anchors
        return torch.cat([centre, size, value[..., 4:]], -1)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        found = [self.decoded(raw, level) for level, raw in enumerate(self.raw(pixels))]
        return torch.cat([each.flatten(1, 3) for each in found], 1)


def scene(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a picture UINT8[SIDE, SIDE, 3], boxes FP32[n, 4] as centre and size, and kinds INT64[n]."""
    random = np.random.default_rng(seed)
    picture = np.clip(
        random.integers(0, 120, 3) + random.normal(0, 6, (SIDE, SIDE, 3)), 0, 255
    ).astype(np.uint8)
    count = random.integers(1, 6)
    kinds = random.integers(0, len(KINDS), count)
    boxes = np.empty((count, 4), np.float32)
    for i in range(count):
        radius = float(np.exp(random.uniform(np.log(5), np.log(40))))
        centre = random.uniform(radius, SIDE - radius, 2)
        draw(picture, kinds[i], centre, radius, random.integers(90, 256, 3))
        boxes[i] = (*centre, 2 * radius, 2 * radius)
    # What is drawn later hides what was drawn before.
    shown = [
        i
        for i in range(count)
        if not any(
            (np.abs(boxes[j, :2] - boxes[i, :2]) < (boxes[j, 2] + boxes[i, 2]) / 2 * 0.6).all()
            for j in range(i + 1, count)
        )
    ]
    return picture, boxes[shown], kinds[shown]


def batch(seed: int, count: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return pixels, and targets FP32[n, anchors, height, width, VALUES] of each grid."""
    pixels = np.empty((count, SIDE, SIDE, 3), np.uint8)
    targets = [np.zeros((count, 3, SIDE // s, SIDE // s, VALUES), np.float32) for s in STRIDES]
    for i in range(count):
        pixels[i], boxes, kinds = scene(seed * count + i)
        for box, kind in zip(boxes, kinds, strict=True):
            for target, stride, anchors in zip(targets, STRIDES, ANCHORS, strict=True):
                column, row = (int(each // stride) for each in box[:2])
                for a, anchor in enumerate(anchors):
                    if 1 / MOST_RATIO < box[2] / anchor < MOST_RATIO:
                        target[i, a, row, column, :5] = (*box, 1)
                        target[i, a, row, column, 5:] = np.arange(len(KINDS)) == kind
    scaled = torch.from_numpy(pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    return scaled, [torch.from_numpy(each) for each in targets]


def loss_of(model: Detector, pixels: torch.Tensor, targets: list[torch.Tensor]) -> torch.Tensor:
    total = torch.zeros(())
    for level, (raw, target) in enumerate(zip(model.raw(pixels), targets, strict=True)):
        there = target[..., 4] > 0
        wanted, found = target[there], model.decoded(raw, level)[there]
        log_size = (found[:, 2:4] / wanted[:, 2:4]).log().abs()
        offset = (found[:, :2] - wanted[:, :2]).abs() / wanted[:, 2:4]
        classes = nn.functional.binary_cross_entropy_with_logits(
            raw[there][:, 5:], wanted[:, 5:], reduction="sum"
        )
        objects = nn.functional.binary_cross_entropy_with_logits(
            raw[..., 4], target[..., 4], reduction="none"
        )
        hard = (raw[..., 4].sigmoid() - target[..., 4]).abs()
        box = 2 * log_size.sum() + 4 * offset.sum()
        total = total + (box + 4 * classes + 4 * (objects * hard).sum()) / there.sum().clamp(1)
    return total


def train(steps: int, count: int) -> Detector:
    torch.manual_seed(0)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=steps)
    for step in range(steps):
        loss = loss_of(model, *batch(step, count))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--batch", type=int, default=14)
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
