"""triton: the real tritonserver, from the wheel of nvidia-pytriton, with its Python backend.

The wheel has no backend in C++, so the benchmark builds a minimal one (triton_identity/identity.cc).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from benchmarks.compiled import compiled
from benchmarks.missing import Missing
from benchmarks.servers.environment import Environment
from benchmarks.servers.kind import FLEETS, Kind, Launch, Ports

SOURCE = Path(__file__).parents[1] / "triton_identity" / "identity.cc"


class Triton(Kind):
    name = "triton"
    counts = True

    def install(self) -> Mapping[str, str]:
        environment = Environment(self.cache / "triton", ["nvidia-pytriton==0.7.0"])
        versions = environment.ensure()
        library = compiled(SOURCE, self.cache, ["-shared", "-fPIC"])
        self._environment = environment
        self._bundle = environment.site / "pytriton" / "tritonserver"
        if not (self._bundle / "bin" / "tritonserver").exists():
            raise Missing(f"{self._bundle} holds no tritonserver")
        self._backends = self.cache / "triton-backends"
        self._lay_out_backends(library, ".".join(versions["python"].split(".")[:2]))
        return {"tritonserver": "2.51.0", **versions}

    def _lay_out_backends(self, library: Path, python: str) -> None:
        """Make the backends' folder: the wheel's backends, the stub for its interpreter, and identity."""
        shutil.rmtree(self._backends, ignore_errors=True)
        shutil.copytree(self._bundle / "backends", self._backends)
        stub = self._bundle / "python_backend_stubs" / python / "triton_python_backend_stub"
        if not stub.exists():
            raise Missing(f"nvidia-pytriton has no Python stub for Python {python}")
        shutil.copy(stub, self._backends / "python")
        (self._backends / "identity").mkdir()
        shutil.copy(library, self._backends / "identity" / "libtriton_identity.so")

    def launch(self, fleet: str, ports: Ports, folder: Path) -> Launch:
        # It has no backend for the repository "onnx".
        repositories = [name for name in FLEETS[fleet] if name != "onnx"]
        libraries = [str(self._environment.site / "nvidia_pytriton.libs")]
        if known := os.environ.get("LD_LIBRARY_PATH"):
            libraries.append(known)
        return Launch(
            [
                str(self._bundle / "bin" / "tritonserver"),
                f"--backend-directory={self._backends}",
                *(f"--model-repository={self.repositories / name}" for name in repositories),
                "--http-address=127.0.0.1",
                f"--http-port={ports.http}",
                "--grpc-address=127.0.0.1",
                f"--grpc-port={ports.grpc}",
                f"--metrics-port={ports.metrics}",
            ],
            {
                "LD_LIBRARY_PATH": os.pathsep.join(libraries),
                # Its Python models run in its own environment.
                "PATH": f"{self._environment.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            },
        )
