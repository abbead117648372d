"""fastapi: FastAPI and onnxruntime under uvicorn with uvloop, httptools and orjson (apps/fastapi_app.py).

It stands for a service without a model server.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.servers.environment import Environment
from benchmarks.servers.kind import Kind, Launch, Ports

APPS = Path(__file__).parent / "apps"


class FastApi(Kind):
    name = "fastapi"
    forms = ("http-json", "http-binary")
    fleets = ("all", "one")

    def install(self) -> Mapping[str, str]:
        self._environment = Environment(
            self.cache / "fastapi",
            ["fastapi", "uvicorn", "uvloop", "httptools", "onnxruntime", "orjson", "numpy"],
        )
        return self._environment.ensure()

    def launch(self, fleet: str, ports: Ports, folder: Path) -> Launch:
        environment = {}
        if fleet == "all":
            path = self.repositories / "onnx" / "mlp" / "1" / "model.onnx"
            environment["MLP"] = str(path)
        return Launch(
            [
                *(str(self._environment.python), "-m", "uvicorn", "fastapi_app:app"),
                *("--app-dir", str(APPS), "--host", "127.0.0.1", "--port", str(ports.http)),
                *("--loop", "uvloop", "--http", "httptools", "--no-access-log"),
                *("--log-level", "warning"),
            ],
            environment,
        )
