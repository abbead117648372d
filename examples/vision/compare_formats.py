"""Ask every format of the network that the server has: python examples/vision/compare_formats.py [FILE]…

Without files, it sends photographs of scikit-learn. The server is at localhost:8000, or at --server=ADDRESS.
It needs `tritonclient[http]`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import tritonclient.http as http


def photographs() -> list[Path]:
    import sklearn.datasets

    folder = Path(sklearn.datasets.__file__).parent / "images"
    return [folder / "china.jpg", folder / "flower.jpg"]


def networks(client: http.InferenceServerClient) -> list[str]:
    """Return the models of the server that are the network in some format."""
    names = (model["name"] for model in client.get_model_repository_index())
    return sorted(name for name in names if name.partition("_")[0] == "efficientnet")


def pixels(client: http.InferenceServerClient, file: bytes) -> np.ndarray:
    """Return what the networks take, FP32[1, 3, 224, 224], of a picture."""
    image = http.InferInput("image", [1, 1], "BYTES")
    image.set_data_from_numpy(np.array([[file]], object))
    return client.infer("prepare_photo", [image]).as_numpy("pixels")


def logits(client: http.InferenceServerClient, model: str, prepared: np.ndarray) -> np.ndarray:
    """Return what one network gives, FP32[1, 1000]."""
    given = http.InferInput("pixels", prepared.shape, "FP32")
    given.set_data_from_numpy(prepared)
    return client.infer(model, [given]).as_numpy("logits")


def best(client: http.InferenceServerClient, found: np.ndarray) -> tuple[str, float]:
    """Return the name and the probability of the first class."""
    given = http.InferInput("scores", found.shape, "FP32")
    given.set_data_from_numpy(found)
    answer = client.infer("best_classes", [given])
    return answer.as_numpy("labels")[0, 0].decode(), float(answer.as_numpy("scores")[0, 0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--server", default="localhost:8000")
    given = parser.parse_args()
    with http.InferenceServerClient(given.server) as client:
        for file in given.files or photographs():
            prepared = pixels(client, file.read_bytes())
            print(file.name)
            for model in networks(client):
                label, probability = best(client, logits(client, model, prepared))
                print(f"  {model:25} {probability:.4f} {label}")


if __name__ == "__main__":
    main()
