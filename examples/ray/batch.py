"""Batch inference over a dataset of pictures: python examples/ray/batch.py

Needs `pip install --find-links wheels 'core[onnx,ray]' 'core-ray[data]' scikit-learn`.
"""

from pathlib import Path

import ray
from core_ray import Predictor
from sklearn.datasets import load_digits

MODELS = Path(__file__).parents[1] / "models"


def main():
    digits = load_digits()
    rows = [
        {"pixels": pixels, "digit": digit}
        for pixels, digit in zip(digits.images, digits.target, strict=True)
    ]
    predictor = Predictor(
        "digits",
        model_repository=MODELS,
        model_control_mode="explicit",
        load_model="digits",
    )
    answered = ray.data.from_items(rows).map_batches(predictor, batch_size=512)
    right = total = 0
    for batch in answered.iter_batches():
        right += int((batch["probabilities"].argmax(axis=1) == batch["digit"]).sum())
        total += len(batch["digit"])
    print(f"{right} of {total} digits are right")


if __name__ == "__main__":
    main()
