"""Run ONNX models with ONNX Runtime.

The import of this package imports onnxruntime. It happens when the first model needs this backend.
"""

import os

# ONNX Runtime reads this variable during its import. Without it, it keeps a session file in the temporary
# folder and a thread that sends usage data. An operator can set the variable to allow that.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from backend_onnx.backend import backend

__all__ = ["backend"]
