"""Models served by hand-written FastAPI, in the v2 protocol's JSON and binary forms.

Runs in a separate environment: uvicorn fastapi_app:app. $MLP names the ONNX file; without it there is no
model mlp. Coroutines execute the models: a thread would cost more than these models.
"""

import os

import numpy as np
import orjson
from fastapi import FastAPI, Request, Response

JSON_SIZE = "inference-header-content-length"

app = FastAPI()


def identity(inputs):
    return {"OUTPUT0": inputs["INPUT0"]}


def add_sub(inputs):
    left, right = inputs["INPUT0"], inputs["INPUT1"]
    return {"OUTPUT0": left + right, "OUTPUT1": left - right}


def onnx_model(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the server has one core
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(inputs):
        return {"OUTPUT0": session.run(["OUTPUT0"], inputs)[0]}

    return run


MODELS = {"identity": identity, "identity_1mb": identity, "identity_16mb": identity}
MODELS["add_sub"] = add_sub
if "MLP" in os.environ:
    MODELS["mlp"] = onnx_model(os.environ["MLP"])


def read(body, json_size):
    document = orjson.loads(body[:json_size] if json_size else body)
    inputs, at = {}, json_size
    for entry in document["inputs"]:
        if json_size:
            size = entry["parameters"]["binary_data_size"]
            array = np.frombuffer(body, np.float32, size // 4, at)
            at += size
        else:
            array = np.array(entry["data"], np.float32)
        inputs[entry["name"]] = array.reshape(entry["shape"])
    return inputs


def write(model, outputs, binary):
    entries, tail = [], []
    for name, array in outputs.items():
        entry = {"name": name, "datatype": "FP32", "shape": list(array.shape)}
        if binary:
            entry["parameters"] = {"binary_data_size": array.nbytes}
            tail.append(array.tobytes())
        else:
            entry["data"] = array.ravel()
        entries.append(entry)
    document = {"model_name": model, "model_version": "1", "outputs": entries}
    head = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if not binary:
        return Response(head, media_type="application/json")
    headers = {JSON_SIZE: str(len(head))}
    return Response(b"".join([head, *tail]), headers=headers, media_type="application/octet-stream")


@app.get("/v2/health/ready")
async def ready():
    return Response()


@app.post("/v2/models/{model}/infer")
async def infer(model: str, request: Request):
    if model not in MODELS:
        return Response(status_code=404)
    json_size = int(request.headers.get(JSON_SIZE, 0))
    inputs = read(await request.body(), json_size)
    return write(model, MODELS[model](inputs), bool(json_size))
