"""core capture warmup: recorded requests as the model_warmup of a model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.errors import invalid
from core_capture.records.reader import CaptureReader
from core_capture.tensors.warmup import WarmupSamples

summary = "make model_warmup samples of the requests for a model"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="MODEL_DIR", type=Path, help="folder of the model, with its config.pbtxt")
    add("--model", default="", help="name of the model in the capture (name of the folder)")
    add(
        "--count",
        type=int,
        default=8,
        metavar="N",
        help="most samples: one for each combination of shapes, the most frequent first (%(default)s)",
    )
    add("--write", action="store_true", help="write the files and the end of config.pbtxt")


def run(reader: CaptureReader, namespace: argparse.Namespace) -> int:
    """Print what config.pbtxt needs; with --write, write it, and the files in MODEL_DIR/warmup."""
    folder = namespace.folder
    config = folder / "config.pbtxt"
    if not config.is_file():
        raise invalid(
            f"'{folder}' has no config.pbtxt: `core config {folder} > {config}` makes one that is complete"
        )
    text = config.read_text()
    samples = WarmupSamples.of(
        reader, namespace.model or folder.resolve().name, text, str(config), namespace.count
    )
    if not namespace.write:
        print(samples.text(), end="")
        print(
            f"with --write, this is added to {config}, and the files are written", file=sys.stderr
        )
        return 0
    for name, data in samples.files.items():
        path = folder / "warmup" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    config.write_text(f"{text.rstrip()}\n\n{samples.text()}")
    print(f"{config}: {len(samples.found)} samples of {samples.requests:,} requests")
    return 0
