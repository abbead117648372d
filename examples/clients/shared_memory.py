"""Digits, whose pixels never travel: python shared_memory.py [ADDRESS] [SOCKET]

It needs `pip install --find-links wheels core-client tritonclient[http] scikit-learn`. The server must run
on this machine, with --allow-client-shm=true, or with --shared-memory-socket=SOCKET.
"""

import sys

import numpy as np
import tritonclient.http as client
from core_client import SharedMemoryPool
from sklearn import datasets


def main(address="localhost:8000", socket=""):
    data = datasets.load_digits()
    with (
        client.InferenceServerClient(address) as server,
        SharedMemoryPool(server, socket=socket) as pool,
    ):
        # Memory of this process and of the server, for as many requests as there are.
        pixels = pool.empty((5, 8, 8), np.float32)
        probabilities = pool.empty((5, 10), np.float32)
        for first in (1500, 1505):
            pixels.array[:] = data.images[first : first + 5]

            server.infer(
                "digits", [pixels.input("pixels")], outputs=[probabilities.output("probabilities")]
            )

            served = probabilities.array.argmax(axis=1)
            for digit, truth in zip(served, data.target[first : first + 5], strict=True):
                print(f"digit {truth}: served {digit}")


if __name__ == "__main__":
    main(*sys.argv[1:])
