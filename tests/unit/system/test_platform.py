"""What the server asks of the system, in both forms."""

import os
import subprocess
import sys

import pytest

from core.system import platform


@pytest.fixture(params=[False, True], ids=["linux", "portable"])
def portable(request, monkeypatch):
    if not request.param and sys.platform != "linux":
        pytest.skip("this is not Linux")
    monkeypatch.setattr(platform, "PORTABLE", request.param)
    return request.param


@pytest.mark.parametrize("value,portable", [("", False), ("0", False), ("1", True)])
def test_the_variable_selects_the_form(value, portable):
    program = "from core.system import platform; print(platform.PORTABLE, platform.PROC.exists())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"CORE_PORTABLE": value},
        capture_output=True,
        text=True,
        check=True,
    )

    expected = portable or sys.platform != "linux"
    assert done.stdout.split() == [str(expected), str(not expected)]


def test_the_cores_are_those_of_the_process_or_of_the_machine(portable):
    if portable:
        assert platform.cores() == frozenset(range(os.cpu_count()))
    else:
        assert platform.cores() == os.sched_getaffinity(0)


def test_only_linux_binds_threads(portable):
    if portable:
        with pytest.raises(OSError, match="only Linux binds threads"):
            platform.bind(0, {0})
    else:
        before = os.sched_getaffinity(0)
        platform.bind(0, before)
        assert os.sched_getaffinity(0) == before
