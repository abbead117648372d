"""A batch that is answered later: python examples/jobs.py

Serves a function, submits 300 requests as a job, stops the server in the middle, starts it again and
fetches the results. It needs `pip install --find-links wheels 'core[jobs]'`.
"""

import json
import tempfile
import time
import urllib.request

import numpy as np

import core


def root(x):
    time.sleep(0.002)  # a model takes its time
    return {"root": np.sqrt(x)}


def serve(folder):
    """Start a server that keeps its jobs in a folder; return it and its address."""
    server = core.Server(jobs_folder=folder).start()
    server.bind("root", root, inputs={"x": ("FP32", [1])}, outputs={"root": ("FP32", [1])})
    return server, f"http://127.0.0.1:{server.serve(http_port=0)['http']}"


def call(url, data=None, headers=None):
    with urllib.request.urlopen(urllib.request.Request(url, data, headers or {})) as answer:
        return answer.read()


def line(value):
    """Return the request for one value."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [value]}
    return json.dumps({"inputs": [tensor]}).encode()


def main():
    batch = b"\n".join(line(value) for value in range(300))
    with tempfile.TemporaryDirectory() as folder:
        server, url = serve(folder)
        lines = {"Content-Type": "application/jsonl"}
        job = json.loads(call(f"{url}/v2/models/root/jobs", batch, lines))
        print("submitted:", job["requests"])
        while job["requests"]["succeeded"] < 50:
            job = json.loads(call(f"{url}/v2/jobs/{job['id']}?wait=0.1"))
        server.stop()

        server, url = serve(folder)
        job = json.loads(call(f"{url}/v2/jobs/{job['id']}?wait=60"))
        print(f"{job['state']}:", job["requests"])
        results = [
            json.loads(row) for row in call(f"{url}/v2/jobs/{job['id']}/results").splitlines()
        ]
        last = results[-1]
        print(f"result {last['index']}:", last["response"]["outputs"][0]["data"])
        server.stop()


if __name__ == "__main__":
    main()
