"""Which GPUs there are."""

import pytest

from core.devices.visible import gpus


@pytest.fixture
def devices(tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    "environment,found",
    [
        ({}, (0, 1)),
        ({"CUDA_VISIBLE_DEVICES": "1"}, (0,)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8a,GPU-9b"}, (0, 1)),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"TRITON_SERVER_CPU_ONLY": "1"}, ()),
    ],
)
def test_gpus_are_numbered_in_the_order_of_the_process(devices, environment, found):
    assert gpus(devices, environment) == found


def test_a_machine_without_device_files_has_none(tmp_path):
    assert gpus(tmp_path / "absent", {}) == ()
