"""Models from a store that is no folder: python cloud_repository.py

The store is fsspec's memory, so that it runs without a cloud; with s3://…, gs://… or as://… it is the same.
"""

import logging
from pathlib import Path

import fsspec
import numpy as np

import core

MODELS = Path(__file__).parent / "models"


def main():
    store = fsspec.filesystem("memory")
    store.put(str(MODELS / "iris"), "/shelf/iris", recursive=True)

    with core.Server(model_repository="memory://shelf", model_control_mode="explicit") as server:
        server.load("iris")
        answer = server.infer("iris", {"X": np.array([[5.1, 3.5, 1.4, 0.2]])})
        print("iris says", answer["predict"].tolist())

        # A new version is what is in the store next to the old one: only its files are fetched.
        store.copy("/shelf/iris/1", "/shelf/iris/2", recursive=True)
        server.load("iris")
        print(
            [
                (each["name"], each["version"], each["state"])
                for each in server.index(ready_only=True)
            ]
        )


if __name__ == "__main__":
    logging.disable(logging.INFO)
    main()
