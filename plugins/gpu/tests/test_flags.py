"""The flags of the plugin take the places of flags of core without effect."""

import pytest

from core import plugins
from core.options import idle_flags, parse, usage

FLAGS = ("enable-peer-access", "min-supported-compute-capability", "model-load-gpu-limit")


def test_the_flags_have_an_effect():
    found = parse(
        [
            "--model-repository=/m",
            "--enable-peer-access=false",
            "--min-supported-compute-capability=8.0",
            "--model-load-gpu-limit=0:0.8",
            "--model-load-gpu-limit=1:0.5",
        ],
        plugins.flags(),
    )

    assert idle_flags(found) == []
    assert found.value("model_load_gpu_limit") == {0: 0.8, 1: 0.5}
    assert found.value("min_supported_compute_capability") == 8.0


@pytest.mark.parametrize("flag", FLAGS)
def test_help_has_each_flag_once(flag):
    assert usage(plugins.flags()).count(f"--{flag}") == 1
