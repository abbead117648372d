"""The memory of weights is in the statistics, once for all instances that share them."""

import pytest
import torch
from backend_pytorch.torchscript import open_torchscript
from backend_pytorch.weights import Weights

from core.backend import MemoryUsage

CONFIG = """
backend: "pytorch"
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
LINE = 4 * (4 * 3 + 3)  # bytes of weights and bias
MODULE = """
from torch import nn

class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 3)

    def forward(self, x):
        return self.line(x)
"""


def two_instances(shared):
    return (
        CONFIG
        + "instance_group { count: 2 kind: KIND_CPU }"
        + f'parameters {{ key: "ENABLE_WEIGHT_SHARING" value {{ string_value: "{shared}" }} }}'
    )


@pytest.mark.parametrize(("shared", "copies"), [("true", 1), ("false", 2)])
def test_each_instance_that_does_not_share_counts_its_weights(serve, shared, copies):
    asked = serve(torch.nn.Linear(4, 3), two_instances(shared))

    assert asked.served.statistics("m")["memory_usage"] == [
        {"type": "CPU", "id": 0, "byte_size": copies * LINE}
    ]


def test_instances_of_a_module_share_its_parameters(serve):
    def fill(folder):
        (folder / "model.py").write_text(MODULE)

    config = CONFIG + 'runtime: "model.py" instance_group { count: 3 kind: KIND_CPU }'
    asked = serve(fill, config.replace("INPUT__0", "x"))

    assert asked.served.statistics("m")["memory_usage"] == [
        {"type": "CPU", "id": 0, "byte_size": LINE}
    ]


def test_an_exported_program_has_weights_too(serve, export):
    def fill(folder):
        export(torch.nn.Linear(4, 3), folder / "model.pt2", torch.zeros(1, 4))

    asked = serve(fill)

    assert asked.served.statistics("m")["memory_usage"] == [
        {"type": "CPU", "id": 0, "byte_size": LINE}
    ]


def test_tensors_of_one_storage_count_once_and_a_freed_program_no_more(script, tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(4, 4, bias=False)
            self.second = torch.nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x))

    script(Tied(), tmp_path / "model.pt")
    program = open_torchscript(tmp_path / "model.pt", "cpu", "m", optimized=True)
    weights = Weights()
    weights.add(program)

    assert weights.usage() == [MemoryUsage("CPU", 0, 4 * 4 * 4)]

    del program
    assert weights.usage() == []
