"""The flags of the plugin take the places of flags of core without effect."""

import pytest

from core import plugins
from core.options import idle_flags, parse, usage

FLAGS = (
    "cuda-memory-pool-byte-size",
    "cuda-virtual-address-size",
    "enable-peer-access",
    "min-supported-compute-capability",
    "model-load-gpu-limit",
    "pinned-memory-pool-byte-size",
)


def test_the_flags_have_an_effect():
    found = parse(
        [
            "--model-repository=/m",
            "--enable-peer-access=false",
            "--min-supported-compute-capability=8.0",
            "--model-load-gpu-limit=0:0.8",
            "--model-load-gpu-limit=1:0.5",
            "--pinned-memory-pool-byte-size=0",
            "--cuda-memory-pool-byte-size=0:0",
            "--cuda-virtual-address-size=0:4096",
        ],
        plugins.flags(),
    )

    assert idle_flags(found) == []
    assert found.value("model_load_gpu_limit") == {0: 0.8, 1: 0.5}
    assert found.value("cuda_virtual_address_size") == {0: 4096}
    assert found.value("min_supported_compute_capability") == 8.0


def test_options_have_the_pool_of_each_gpu_that_is_there(monkeypatch):
    monkeypatch.setattr("core_gpu.options.gpus", lambda: (0, 1))

    found = parse(["--model-repository=/m", "--cuda-memory-pool-byte-size=1:5"], plugins.flags())

    assert found.value("cuda_memory_pool_byte_size") == {0: 64 << 20, 1: 5}


@pytest.mark.parametrize("flag", FLAGS)
def test_help_has_each_flag_once(flag):
    assert usage(plugins.flags()).count(f"--{flag}") == 1
