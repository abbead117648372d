"""A program of PyTriton: serve a function on the server of a URL, and ask for it."""

import sys

import numpy as np
from pytriton.client import ModelClient
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import RemoteTriton


@batch
def double(a):
    return {"b": 2 * a}


with RemoteTriton(url=sys.argv[1]) as triton:
    triton.bind(
        model_name="double",
        infer_func=double,
        inputs=[Tensor(name="a", dtype=np.float32, shape=(-1,))],
        outputs=[Tensor(name="b", dtype=np.float32, shape=(-1,))],
        config=ModelConfig(
            max_batch_size=8, batcher=DynamicBatcher(max_queue_delay_microseconds=100)
        ),
    )
    with ModelClient(sys.argv[1], "double") as client:
        rows = np.array([[1, 2], [3, 4]], np.float32)
        print("batch", client.infer_batch(rows)["b"].tolist())
        print("sample", client.infer_sample(rows[0])["b"].tolist())
