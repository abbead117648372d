"""Digits and breast cancer, with NVIDIA's client over HTTP: python tritonclient_http.py [ADDRESS]"""

import sys

import numpy as np
import tritonclient.http as client
from sklearn import datasets


def main(address="localhost:8000"):
    with client.InferenceServerClient(address) as server:
        digits(server)
        breast_cancer(server)


def digits(server):
    """Ask for the best class of five images that the model has not been trained with."""
    data = datasets.load_digits()
    images = data.images[1500:1505].astype(np.float32)
    pixels = client.InferInput("pixels", images.shape, "FP32")
    pixels.set_data_from_numpy(images)
    best = client.InferRequestedOutput("probabilities", class_count=1)

    answer = server.infer("digits", [pixels], outputs=[best])

    texts = answer.as_numpy("probabilities").ravel()
    for text, truth in zip(texts, data.target[1500:1505], strict=True):
        probability, number, label = text.decode().split(":")
        print(f"digit {truth}: served {number} ({label}), probability {float(probability):.3f}")


def breast_cancer(server):
    """The same for a model whose configuration the server made from its file."""
    data = datasets.load_breast_cancer()
    rows = data.data[400:404].astype(np.float32)
    features = client.InferInput("features", rows.shape, "FP32")
    features.set_data_from_numpy(rows)

    answer = server.infer("breast_cancer", [features])

    names = data.target_names
    labels = answer.as_numpy("label").ravel()
    for label, truth in zip(labels, data.target[400:404], strict=True):
        print(f"tumour {names[truth]}: served {names[label]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
