"""Copy the model of the package silero-vad into examples/speech/models: python examples/speech/make_model.py

    pip install --no-deps silero-vad

The package has 11 MB. It is not imported: it needs PyTorch, and the model does not. Git ignores the copy.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

FILE = Path(__file__).parent / "models" / "speech" / "1" / "model.onnx"


def main() -> None:
    package = importlib.util.find_spec("silero_vad")
    if package is None or package.origin is None:
        raise SystemExit(f"the package silero-vad is not installed\n{__doc__}")
    source = Path(package.origin).parent / "data" / "silero_vad_openvino_16k.onnx"
    if not source.exists():
        raise SystemExit(f"{source} is not there: this example was written for silero-vad 6.2")
    FILE.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, FILE)
    print(f"{FILE}: {FILE.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
