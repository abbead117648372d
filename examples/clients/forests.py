"""Tumours and wines, with NVIDIA's client over HTTP: python forests.py [ADDRESS]"""

import json
import sys

import numpy as np
import tritonclient.http as client
from sklearn import datasets


def main(address="localhost:8000"):
    with client.InferenceServerClient(address) as server:
        tumours(server)
        for model in ("wine_pipeline", "wine_bls"):
            wines(server, model)


def tumours(server):
    """The best class with its label, and what spoke for it most."""
    data = datasets.load_breast_cancer()
    rows = data.data[400:404].astype(np.float32)
    features = client.InferInput("input__0", rows.shape, "FP32")
    features.set_data_from_numpy(rows)
    outputs = [
        client.InferRequestedOutput("output__0", class_count=1),
        client.InferRequestedOutput("treeshap_output"),
    ]

    answer = server.infer("tumours", [features], outputs=outputs)

    shares = answer.as_numpy("treeshap_output")[:, :-1]  # the last is no feature's
    texts = answer.as_numpy("output__0").ravel()
    for text, share, truth in zip(texts, shares, data.target[400:404], strict=True):
        probability, _, label = text.decode().split(":")
        feature = data.feature_names[np.abs(share).argmax()]
        print(
            f"tumour {data.target_names[truth]}: served {label}, probability "
            f"{float(probability):.3f}, mostly by its {feature}"
        )


def wines(server, model):
    """Text in, text out; one measurement is missing."""
    data = datasets.load_wine()
    for i in (0, 70, 150):
        measured = dict(zip(data.feature_names, data.data[i], strict=True))
        del measured["ash"]
        measurements = client.InferInput("measurements", [1, 1], "BYTES")
        measurements.set_data_from_numpy(np.array([[json.dumps(measured).encode()]], object))

        answer = server.infer(model, [measurements])

        cultivar = answer.as_numpy("cultivar").item().decode()
        print(f"{model}: wine of cultivar {data.target[i]}: served {cultivar}")


if __name__ == "__main__":
    main(*sys.argv[1:])
