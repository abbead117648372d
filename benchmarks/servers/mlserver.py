"""mlserver: Seldon's MLServer with models of its own interface (apps/mlserver_models.py).

It has no parallel workers: on one core a second process only adds overhead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.servers.environment import Environment
from benchmarks.servers.kind import Kind, Launch, Ports

APPS = Path(__file__).parent / "apps"
LARGEST_MESSAGE = 64 << 20

MODELS = {
    "identity": "Identity",
    "add_sub": "AddSub",
    "mlp": "Mlp",
}
OF_FLEET = {"all": ("identity", "add_sub", "mlp"), "one": ("identity",)}


class MlServer(Kind):
    name = "mlserver"
    forms = ("http-json", "grpc")
    fleets = tuple(OF_FLEET)

    def install(self) -> Mapping[str, str]:
        self._environment = Environment(self.cache / "mlserver", ["mlserver==1.7.1", "onnxruntime"])
        return self._environment.ensure()

    def launch(self, fleet: str, ports: Ports, folder: Path) -> Launch:
        settings = {
            "host": "127.0.0.1",
            "http_port": ports.http,
            "grpc_port": ports.grpc,
            "metrics_port": ports.metrics,
            "parallel_workers": 0,
            "debug": False,
            "grpc_max_message_length": LARGEST_MESSAGE,
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        for name in OF_FLEET[fleet]:
            (folder / name).mkdir()
            model = {"name": name, "implementation": f"mlserver_models.{MODELS[name]}"}
            if name == "mlp":
                path = self.repositories / "onnx" / "mlp" / "1" / "model.onnx"
                model["parameters"] = {"uri": str(path)}  # type: ignore[assignment]
            (folder / name / "model-settings.json").write_text(json.dumps(model))
        return Launch(
            [str(self._environment.folder / "bin" / "mlserver"), "start", str(folder)],
            {"PYTHONPATH": str(APPS)},
        )
