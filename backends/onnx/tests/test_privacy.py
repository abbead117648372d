"""ONNX Runtime tells nobody about the models that it runs."""

import os
import subprocess
import sys


def test_importing_the_backend_leaves_no_telemetry_session(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)

    subprocess.run([sys.executable, "-c", "import backend_onnx"], env=environment, check=True)

    assert list(tmp_path.iterdir()) == []
