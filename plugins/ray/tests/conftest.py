"""A server with models that are functions, to which requests are forwarded."""

import asyncio
import threading

import numpy as np
import pytest

import core


@pytest.fixture(scope="module")
def server():
    """A server in this process; its models `double`, `count` and `wait` are functions."""

    def count(n):
        for i in range(int(n[0])):
            yield np.array([i], np.int32)

    begun, cancelled = threading.Event(), threading.Event()

    async def wait(n):
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return n

    with core.Server() as made:
        made.bind(
            "double",
            lambda x: 2 * x,
            inputs={"x": ("FP32", [-1])},
            outputs={"y": ("FP32", [-1])},
            batching=True,
        )
        one = ("INT32", [1])
        made.bind("count", count, inputs={"n": one}, outputs={"i": one})
        made.bind("wait", wait, inputs={"n": one}, outputs={"m": one})
        made.begun, made.cancelled = begun, cancelled
        made.port = made.serve(http_port=0)["http"]
        yield made
