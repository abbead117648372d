"""CORE_PATIENCE_S: how long the tests of a contract wait."""

import os
import subprocess
import sys

import pytest

PROGRAM = (
    "from core_testing import server_thread; from core_testing.engines import recorder;"
    "print(server_thread.PATIENCE_S, recorder.PATIENCE_S)"
)


@pytest.mark.parametrize(("given", "seconds"), [("", "60.0 60.0"), ("600", "600.0 600.0")])
def test_a_variable_changes_how_long_a_call_may_take(given, seconds):
    environment = {**os.environ, "CORE_PATIENCE_S": given}

    found = subprocess.check_output([sys.executable, "-c", PROGRAM], env=environment, text=True)

    assert found.strip() == seconds
