"""Does the next version of a model answer as this one? python examples/capture.py

Serves a function and captures its requests, then serves its next version and replays them. The
last lines say which answers differ. It needs `pip install --find-links wheels 'core[capture]'`.
"""

import json
import subprocess
import sys
import tempfile
import urllib.request

import numpy as np

import core

TENSORS = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"root": ("FP32", [-1])}}


def first(x):
    return {"root": np.sqrt(x)}


def second(x):
    """Two steps of Newton's method: wrong for large numbers."""
    root = np.maximum(x, 1)
    for _ in range(4):
        root = (root + x / root) / 2
    return {"root": root}


def ask(port, *values):
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": values}
    url = f"http://127.0.0.1:{port}/v2/models/root/infer"
    with urllib.request.urlopen(url, json.dumps({"inputs": [tensor]}).encode()) as answer:
        return json.loads(answer.read())["outputs"][0]["data"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        with core.Server(capture=folder, capture_answers=True) as server:
            server.bind("root", first, **TENSORS)
            port = server.serve(http_port=0)["http"]
            for values in ((1, 2), (3,), (1000, 2), (9,)):
                print(values, ask(port, *values))
        with core.Server() as server:
            server.bind("root", second, **TENSORS)
            port = server.serve(http_port=0)["http"]
            replay = [sys.executable, "-m", "core", "replay", folder, "--speed", "max"]
            more = ["--url", f"127.0.0.1:{port}", "--tolerance", "1e-3"]
            subprocess.run([*replay, *more], check=False)


if __name__ == "__main__":
    main()
