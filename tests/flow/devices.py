"""Models that compute on a device, their requests, and rows of numbers."""

import numpy as np
from core_testing.fake_device import DeviceArray, FakeDevice

import core
from core.request import InferenceRequest
from core.tensor import Tensor

BATCHING = "dynamic_batching { max_queue_delay_microseconds: 1000 }"


class Fake:
    """Instances that compute y = x + 1 on a device, and record their inputs."""

    def __init__(self):
        self.place = FakeDevice()
        self.given = []
        self.gathered = []

    def instance(self, memory="device", gathers=True, answers="device"):
        fake = self

        class Instance(core.ModelInstance):
            placement = "inline"

            def open(self):
                self.memory = memory  # as a backend does that has GPU and CPU instances

            def gather(self, name, arrays):
                if not gathers:
                    return NotImplemented
                fake.gathered.append((name, [type(array) for array in arrays]))
                return fake.place.concatenate(arrays)

            def execute(self, batch):
                x = batch["x"]
                fake.given.append(x)
                if isinstance(x, DeviceArray):
                    y = x.apply(lambda held: held + 1)
                else:
                    y = fake.place.array(x + 1) if answers == "device" else x + 1
                return {"y": y}

        return Instance


def asked(x, outputs=(), **more):
    tensor = x if isinstance(x, Tensor) else Tensor.of("x", x)
    return InferenceRequest("m", {"x": tensor}, outputs=outputs, **more)


def rows(*values):
    return np.array([[value, value] for value in values], np.float32)
