"""Memory whose bytes vanish while somebody looks at them: the process lives, and those who ask are told."""

import faulthandler
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from core.errors import CoreError, Kind
from core.pipeline.answers.placement import place
from core.tensor import Tensor
from frontends.shared.native.mapping import Mapping

PAGE = 4096


@pytest.fixture
def file(client):
    found = os.open("/dev/shm" + client.create(4 * PAGE), os.O_RDWR)
    os.pwrite(found, b"x" * (4 * PAGE), 0)
    yield found
    os.close(found)


def test_a_mapping_is_the_file_itself(file):
    mapping = Mapping(file, PAGE, 2 * PAGE)

    memoryview(mapping)[0] = ord("a")

    assert len(mapping) == 2 * PAGE
    assert os.pread(file, 2, PAGE) == b"ax"
    assert mapping.address == np.frombuffer(mapping, np.uint8).ctypes.data


def test_an_error_of_the_system_is_an_error(file):
    with pytest.raises(OSError, match="Invalid argument"):
        Mapping(file, 1, PAGE)


def test_missing_bytes_are_zeros(file):
    mapping = Mapping(file, 0, 4 * PAGE)
    view = memoryview(mapping)

    os.ftruncate(file, PAGE)
    assert not mapping.lost
    found = bytes(view)

    assert found == b"x" * PAGE + bytes(3 * PAGE)
    assert mapping.lost


def test_writes_there_have_no_effect(file):
    mapping = Mapping(file, 0, 4 * PAGE)

    os.ftruncate(file, 2 * PAGE)
    memoryview(mapping)[3 * PAGE] = 1
    os.ftruncate(file, 4 * PAGE)

    assert os.pread(file, 1, 3 * PAGE) == b"\0"
    assert mapping.lost


def test_other_mappings_of_the_file_are_not_touched(file):
    first, second = Mapping(file, 0, 4 * PAGE), Mapping(file, 0, 4 * PAGE)

    os.ftruncate(file, PAGE)
    bytes(first)
    os.ftruncate(file, 4 * PAGE)

    assert (first.lost, second.lost) == (True, False)
    memoryview(second)[0] = ord("s")
    assert os.pread(file, 1, 0) == b"s"


def test_more_mappings_than_are_watched_at_first(file):
    mappings = [Mapping(file, 0, 4 * PAGE) for _ in range(200)]

    os.ftruncate(file, 0)

    assert all(bytes(each) == bytes(4 * PAGE) for each in mappings)
    assert all(each.lost for each in mappings)


def test_a_faulting_page_ends_no_region_before_it_is_asked_for_again(regions, client):
    key = client.create(2 * PAGE)
    regions.register("r", key, 0, 2 * PAGE)
    view = regions.view("r", 0, 2 * PAGE)

    os.truncate("/dev/shm" + key, 0)
    bytes(view)
    os.truncate("/dev/shm" + key, 2 * PAGE)

    with pytest.raises(CoreError, match="the memory of shared memory region 'r' is gone") as error:
        regions.view("r", 0, 1)
    assert error.value.kind is Kind.INVALID
    regions.unregister("r")
    regions.register("r", key, 0, 2 * PAGE)
    regions.view("r", 0, 1)


def test_an_output_that_meets_the_hole_fails(regions, client):
    key = client.create(PAGE)
    regions.register("r", key, 0, PAGE)
    view = regions.view("r", 0, PAGE)
    os.truncate("/dev/shm" + key, 0)

    with pytest.raises(CoreError, match="output 'y' cannot be written: its shared memory"):
        place(Tensor.of("y", np.ones(16, np.float32)), view)


OTHER_FAULT = """
import faulthandler, mmap, os, sys
from frontends.shared.native.mapping import Mapping
if sys.argv[1] == "dump":
    faulthandler.enable()
file = os.memfd_create("x")
os.ftruncate(file, 4096)
guarded = Mapping(file, 0, 4096)
other = mmap.mmap(file, 4096)
os.ftruncate(file, 0)
other[0]
"""


@pytest.mark.parametrize("before", ["nobody", "dump"])
def test_faults_in_other_memory_still_end_the_process(before):
    found = subprocess.run(
        [sys.executable, "-c", OTHER_FAULT, before], capture_output=True, text=True, timeout=50
    )

    assert found.returncode == -signal.SIGBUS
    assert ("Bus error" in found.stderr) is (before == "dump")


def test_the_tests_themselves_are_watched_by_faulthandler():
    assert faulthandler.is_enabled()  # its handler is there before ours: both must live together
