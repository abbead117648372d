"""Served, the server of tests: what is left when it cannot start."""

import threading

import pytest
from core_testing.served import Served

from core.errors import CoreError


def test_a_server_that_cannot_start_leaves_no_thread(tmp_path):
    before = set(threading.enumerate())

    with pytest.raises(CoreError, match="cpu-cores"):
        Served(None, tmp_path, host_policy={"cpu": {"cpu-cores": "x"}}).__enter__()

    assert set(threading.enumerate()) == before
