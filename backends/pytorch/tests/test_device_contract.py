"""The contract of backends, on a fake GPU."""

import pytest
from backend_pytorch.conformance import TestTorchScript as OfTorchScript
from backend_pytorch.instance import AHEAD, TorchInstance
from core_testing.fake_device import FakeDevice


class TestOnFakeGpu(OfTorchScript):
    @pytest.fixture(autouse=True)
    def _every_instance_has_a_lane(self, monkeypatch, fake_streams):
        gpu = FakeDevice()

        def placed(instance, device):
            instance._device = device
            instance.placement, instance.ahead = "callback", AHEAD

        monkeypatch.setattr(
            "backend_pytorch.cuda.streams_of",
            lambda device, program, polls: fake_streams(gpu, program.keeps_outputs),
        )
        device = property(lambda instance: instance._device, placed)
        monkeypatch.setattr(TorchInstance, "device", device)
        yield
        assert gpu.copies == 0  # host memory is filled by a pinned copy
