"""Functions as models, in this process: python in_process.py [--serve]

Several threads ask one at a time; the function sees their requests as batches. With --serve the same
model is there for everybody on this machine, over HTTP on 8000 and gRPC on 8001, until ^C.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import core


def distance(here, there):
    """Kilometres between places on the earth: FP32[rows, 2] of degrees, twice → FP32[rows, 1]."""
    north, east = np.radians(here).T, np.radians(there).T
    middle = np.sin(north[0]) * np.sin(east[0])
    middle += np.cos(north[0]) * np.cos(east[0]) * np.cos(north[1] - east[1])
    return (6371 * np.arccos(np.clip(middle, -1, 1)))[:, None].astype(np.float32)


BERLIN = [52.52, 13.41]
PLACES = {"Paris": [48.86, 2.35], "Nairobi": [-1.29, 36.82], "Lima": [-12.05, -77.04]}


def main(*arguments):
    place = ("FP32", [2])
    with core.Server() as server:
        server.bind(
            "distance",
            distance,
            inputs={"here": place, "there": place},
            outputs={"kilometres": ("FP32", [1])},
            batching=True,
            max_queue_delay_microseconds=1000,
        )

        def ask(name):
            rows = {"here": [BERLIN], "there": [PLACES[name]]}
            inputs = {key: np.array(row, np.float32) for key, row in rows.items()}
            return server.infer("distance", inputs)["kilometres"][0, 0]

        with ThreadPoolExecutor() as threads:
            for name, kilometres in zip(PLACES, threads.map(ask, PLACES), strict=True):
                print(f"Berlin to {name}: {kilometres:.0f} km")

        if "--serve" in arguments:
            print("serving", server.serve(http_port=8000, grpc_port=8001), flush=True)
            server.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
