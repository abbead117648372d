"""Instances on a wrong device, or with a wrong description of it."""

import core
from broken_backends.contract import Contract, Well, caught_by


@caught_by(
    "test_an_instance_of_a_cpu_group_is_on_the_cpu",
    says="an instance of KIND_CPU says that it is on gpu:1",
)
class TestChoosesItsDevice(Contract):
    class instance(Well):
        def open(self):
            self.device = core.Device("GPU", 1)


@caught_by("test_an_instance_answers_without_its_python_method")
class TestIsNotNative(Contract):
    supports = {"batching", "cpu", "native"}
