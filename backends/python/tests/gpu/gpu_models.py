"""Models for these tests, and the rest of what several of them need."""

import numpy as np

X = np.array([[1, 2, 3]], np.float32)
GPU = "preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU)"
FREE = 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'
TWICE = """
def execute(self, requests):
    return [respond(on_gpu("y", look(x) * 2 + (0 if x.is_cpu() else 100))) for x in map(x_of, requests)]
"""
SAME = """
def execute(self, requests):
    return [respond(pb_utils.Tensor.from_dlpack("y", x_of(request))) for request in requests]
"""
