"""A model that sums up sequences, its configurations, requests and answers."""

import asyncio

import numpy as np
import pytest

import core
from core.errors import CoreError, Kind
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor

START, END = SEQUENCE_START, SEQUENCE_END


def control(name, kind, false_true="int32_false_true: [ 0, 1 ]"):
    return f'{{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {false_true} }} ] }}'


CONTROLS = (
    "control_input [ "
    + ", ".join(
        [
            control("START", "START"),
            control("END", "END"),
            control("READY", "READY"),
            control("CORRID", "CORRID", "data_type: TYPE_UINT64"),
        ]
    )
    + " ]"
)


def batching(strategy, idle_us=0, more=""):
    return (
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: {idle_us} {CONTROLS} }}"
        f" {more}"
    )


DIRECT = batching("direct { }")
OLDEST = batching("oldest { max_candidate_sequences: 2 }")


class Sum(core.ModelInstance):
    """y is the sum of the sequence's x, after 10 ms. Notes (rows of correlation ids) of each batch."""

    def open(self):
        self.sums = {}

    async def execute(self, batch):
        ids = batch["CORRID"].ravel().tolist()
        ready = batch["READY"].ravel().tolist()
        self.model.recorder.batches.append(
            [i if r else None for i, r in zip(ids, ready, strict=True)]
        )
        await asyncio.sleep(0.010)
        y = np.zeros_like(batch["x"])
        for row, (key, start) in enumerate(zip(ids, batch["START"].ravel(), strict=True)):
            if ready[row]:
                self.sums[key] = (0 if start else self.sums[key]) + batch["x"][row, 0]
                y[row] = self.sums[key]
        return {"y": y}


def ask(chain, sequence, value, flags=0, rows=1):
    x = Tensor.of("x", np.full((rows, 1), value, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, correlation_id=sequence, flags=flags))


async def y(reply):
    return (await reply).output("y").array[0, 0]


def refusal(chain, *args, **kwargs):
    with pytest.raises(CoreError) as error:
        ask(chain, *args, **kwargs)
    assert error.value.kind is Kind.INVALID
    return error.value.message
