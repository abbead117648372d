"""The import of OpenCV leaves the environment of the server's programs alone."""

import os
import subprocess
import sys

import pytest

SHOW = "import os, backend_image.decode; print(os.environ.get('LD_LIBRARY_PATH'))"


@pytest.mark.parametrize("value", [None, "/mine"])
def test_ld_library_path_is_as_before(value):
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    if value:
        environment["LD_LIBRARY_PATH"] = value

    found = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )

    assert found.stdout.strip() == str(value)
