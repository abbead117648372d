"""Ways to ask a model on Ray: by the protocol v2, with bytes, or by a handle. paths.py measures them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import grpc.aio
import numpy as np
from tritonclient.grpc import service_pb2

PIXELS = np.random.default_rng(0).random((1, 8, 8), np.float32)
METHOD = "/inference.GRPCInferenceService/ModelInfer"

Ask = Callable[[], Awaitable[Any]]
"""Send one request, and return when its response is here. Raises if it fails."""


def by_handle(handle: Any, *arguments: Any) -> Ask:
    async def ask() -> Any:
        return await handle.infer.remote(*arguments)

    return ask


def over_http(http: aiohttp.ClientSession, port: int, prefix: str) -> Ask:
    """Ask by the protocol v2, with binary tensors in both directions."""
    tensor = {"name": "pixels", "shape": [1, 8, 8], "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": PIXELS.nbytes}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    url, body = f"http://127.0.0.1:{port}{prefix}/v2/models/digits/infer", head + PIXELS.tobytes()

    async def ask() -> bytes:
        async with http.post(url, data=body, headers=headers) as response:
            response.raise_for_status()
            return await response.read()

    return ask


def bytes_over_http(http: aiohttp.ClientSession, port: int, path: str) -> Ask:
    url = f"http://127.0.0.1:{port}{path}"

    async def ask() -> bytes:
        async with http.post(url, data=PIXELS.tobytes()) as response:
            response.raise_for_status()
            return await response.read()

    return ask


def over_grpc(port: int) -> Ask:
    request = service_pb2.ModelInferRequest(model_name="digits")
    request.inputs.add(name="pixels", datatype="FP32", shape=[1, 8, 8])
    request.raw_input_contents.append(PIXELS.tobytes())
    call = grpc.aio.insecure_channel(f"127.0.0.1:{port}").unary_unary(METHOD)
    data, metadata = request.SerializeToString(), (("application", "core"),)

    async def ask() -> Any:
        return await call(data, metadata=metadata)

    return ask
