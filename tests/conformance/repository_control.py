"""Model repository control over HTTP: index, load and unload, and the model `plain`."""

from conformance.protocol import data_of, tensor, wait_until

EXPLICIT = "--model-control-mode=explicit"
PLAIN_CONFIG = {
    "backend": "python",
    "max_batch_size": 0,
    "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
}


def load(server, name, body=None):
    return server.post(f"/v2/repository/models/{name}/load", body)


def unload(server, name, body=None):
    response = server.post(f"/v2/repository/models/{name}/unload", body)
    wait_until(lambda: state(server, name) != "UNLOADING")
    return response


def index(server, body=None):
    response = server.post("/v2/repository/index", body)
    assert response.status == 200, response.body
    return response.json


def state(server, name, version=None):
    for entry in index(server):
        if entry["name"] == name and version in (None, entry.get("version")):
            return entry.get("state")
    return None


def double(server, value=3):
    return data_of(server.infer("plain", {"inputs": [tensor("INPUT0", [value])]}))
