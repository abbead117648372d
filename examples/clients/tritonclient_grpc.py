"""Photographs and digits, with NVIDIA's client over gRPC: python tritonclient_grpc.py [ADDRESS]"""

import sys
from queue import Queue

import numpy as np
import tritonclient.grpc as client
from sklearn import datasets


def main(address="localhost:8001"):
    with client.InferenceServerClient(address) as server:
        photographs(server)
        digits(server)


def photographs(server):
    """Have both sample photographs of scikit-learn made ready for an image model."""
    data = datasets.load_sample_images()
    for path, photograph in zip(data.filenames, data.images, strict=True):
        images = photograph[np.newaxis]
        image = client.InferInput("image", images.shape, "UINT8")
        image.set_data_from_numpy(images)

        pixels = server.infer("preprocess", [image]).as_numpy("pixels")

        name = path.replace("\\", "/").rpartition("/")[2]
        means = ", ".join(f"{mean:.3f}" for mean in pixels.mean(axis=(0, 2, 3)))
        print(f"{name} {photograph.shape}: {pixels.shape}, mean of each colour {means}")


def digits(server):
    """Send images one by one without waiting; the server puts them into batches."""
    data = datasets.load_digits()
    answers = Queue()
    for i in range(1500, 1600):
        pixels = client.InferInput("pixels", [1, 8, 8], "FP32")
        pixels.set_data_from_numpy(data.images[i : i + 1].astype(np.float32))
        server.async_infer(
            "digits",
            [pixels],
            request_id=str(i),
            callback=lambda result, error: answers.put((result, error)),
        )
    right = 0
    for _ in range(100):
        result, error = answers.get(timeout=30)
        if error is not None:
            raise error
        i = int(result.get_response().id)
        right += int(result.as_numpy("probabilities").argmax() == data.target[i])
    print(f"digits: {right} of 100 right")


if __name__ == "__main__":
    main(*sys.argv[1:])
