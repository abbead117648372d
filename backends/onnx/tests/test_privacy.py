"""ONNX Runtime sends no data about the models that it runs."""

import os
import subprocess
import sys


def test_importing_the_backend_leaves_no_telemetry_session(tmp_path):
    # Builds of 1.29 and newer store a device id and unsent events in the home directory.
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "CI"):
        environment.pop(name, None)

    subprocess.run([sys.executable, "-c", "import backend_onnx"], env=environment, check=True)

    assert list(tmp_path.iterdir()) == []
