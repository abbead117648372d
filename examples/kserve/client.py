"""KServe's own clients on core: python client.py HTTP_PORT GRPC_PORT

Needs `pip install kserve`, and a server with examples/models and core[tfserving]. Prints the digit of
../clients/digit.json by each protocol.
"""

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

DIGIT = json.loads((Path(__file__).parents[1] / "clients" / "digit.json").read_text())
PIXELS = np.array(DIGIT["inputs"][0]["data"], np.float32).reshape(1, 8, 8)


def request():
    tensor = InferInput("pixels", list(PIXELS.shape), "FP32")
    tensor.set_data_from_numpy(PIXELS)
    return InferRequest("digits", [tensor])


async def main(http, grpc):
    async with InferenceRESTClient(RESTConfig(protocol="v1")) as client:
        answer = await client.infer(http, {"instances": PIXELS.tolist()}, model_name="digits")
        print("v1", np.argmax(answer["predictions"]))
    async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
        assert await client.is_model_ready(http, "digits")
        answer = await client.infer(http, request(), model_name="digits")
        print("v2", answer.outputs[0].as_numpy().argmax())
    async with InferenceGRPCClient(grpc) as client:
        assert await client.is_server_ready() and await client.is_model_ready("digits")
        answer = await client.infer(request())
        print("grpc-v2", answer.outputs[0].as_numpy().argmax())


if __name__ == "__main__":
    asyncio.run(main(f"http://127.0.0.1:{sys.argv[1]}", f"127.0.0.1:{sys.argv[2]}"))
