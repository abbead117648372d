"""Copy a network that hears notes into examples/notes/models: python examples/notes/make_models.py [FORMAT]…

FORMAT   onnx, litert or tensorflow; without any, onnx and litert

    pip install --no-deps basic-pitch

The package has 0.8 MB, and the same network as ONNX file, LiteRT file and SavedModel. It is not imported.
Git ignores the copies.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "models"
FORMATS = {  # → file of the package, its copy
    "onnx": ("nmp.onnx", "network_onnx/1/model.onnx"),
    "litert": ("nmp.tflite", "notes_litert/1/model.tflite"),
    "tensorflow": ("nmp", "notes_tensorflow/1/model.savedmodel"),
}


def main(formats: list[str], folder: Path = FOLDER) -> None:
    package = importlib.util.find_spec("basic_pitch")
    if package is None or package.origin is None:
        raise SystemExit(f"the package basic-pitch is not installed\n{__doc__}")
    networks = Path(package.origin).parent / "saved_models" / "icassp_2022"
    for each in formats or ["onnx", "litert"]:
        if each not in FORMATS:
            raise SystemExit(f"there is no format '{each}', only {', '.join(FORMATS)}")
        name, copy = FORMATS[each]
        source, target = networks / name, folder / copy
        if not source.exists():
            raise SystemExit(f"{source} is not there: this example was written for basic-pitch 0.4")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)
        print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
