"""Copy the networks of the package rapidocr into examples/ocr/models: python examples/ocr/make_models.py

    pip install --no-deps rapidocr

The package has 27 MB. It is not imported: its networks need only onnxruntime. The file of the second one
holds its characters. Git ignores the copies.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

FOLDER = Path(__file__).parent / "models"
FILES = {
    "PP-OCRv6_det_small.onnx": FOLDER / "find_text" / "1" / "model.onnx",
    "PP-OCRv6_rec_small.onnx": FOLDER / "recognise_lines" / "1" / "model.onnx",
}
CHARACTERS = FOLDER / "spell_lines" / "1" / "characters.txt"


def main() -> None:
    package = importlib.util.find_spec("rapidocr")
    if package is None or package.origin is None:
        raise SystemExit(f"the package rapidocr is not installed\n{__doc__}")
    for name, copy in FILES.items():
        source = Path(package.origin).parent / "models" / name
        if not source.exists():
            raise SystemExit(f"{source} is not there: this example was written for rapidocr 3.10")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        print(f"{copy}: {copy.stat().st_size / 1e6:.1f} MB")
    characters = characters_of(FILES["PP-OCRv6_rec_small.onnx"])
    CHARACTERS.write_bytes("\n".join(characters).encode())
    print(f"{CHARACTERS}: {len(characters)} characters")


def characters_of(file: Path) -> list[str]:
    """Return the character of each output. The file lacks the first, none, and the last, a space."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    found: str = session.get_modelmeta().custom_metadata_map["character"]
    return ["", *found.split("\n"), " "]


if __name__ == "__main__":
    main()
