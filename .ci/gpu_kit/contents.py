"""What a kit holds of this checkout: distributions, test files, and the files that these read."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Distributions with tests of the mark gpu, the most important first. Machines with GPUs have what they need.
TESTED = (
    "backends/python",
    "backends/pytorch",
    "plugins/gpu",
    "plugins/gpu_metrics",
    "plugins/tritonserver",
    "backends/onnx",
    "plugins/testing",
    "backends/jax",
    "backends/tensorrt",
)
# Those that have such tests too, but whose frameworks are rare there and too large to be carried:
# DALI, nvForest, TensorFlow.
LEFT_OUT = ("backends/dali", "backends/fil", "backends/tensorflow")
# Distributions that `python -m benchmarks.gpu` serves with, or that those above need.
NEEDED = (
    "backends/testing",
    "backends/transformers",
    "plugins/generate",
    "plugins/openai",
    "plugins/platforms",
)
# What tests and benchmarks import beside what the distributions require.
LIBRARIES = (
    "hypothesis>=6.100",
    "onnx>=1.16",
    "pytest>=8.2",
    "pytest-asyncio>=0.24",
    "pytest-timeout>=2.3",
    "tritonclient[http,grpc]>=2.60",
)
# Packages whose versions are part of the results.
FRAMEWORKS = (
    "cupy-cuda12x",
    "cupy-cuda13x",
    "jax",
    "numpy",
    "onnxruntime",
    "tensorrt",
    "torch",
    "transformers",
)
# Modules that must be there; what they need shows here, not in the middle of a test.
IMPORTS = (
    "backend_onnx.backend",
    "backend_python",
    "core_gpu",
    "core_gpu_metrics",
    "core_testing.served",
    "frontend_openai",
    "frontends.grpc.native.connection",
    "tritonclient.grpc",
    "tritonclient.http",
    "tritonclient.utils.cuda_shared_memory",
    "tritonserver",
)
# `core` and `frontends` stay behind: beside the tests they would hide the compiled ones of the wheels.
BEHIND = ("core/", "frontends/", "docs/", "examples/", "deploy/", "clients/")
MARK = re.compile(r"^(@|pytestmark = |    )pytest\.mark\.gpu\b", re.M)
PICTURES = (".gif", ".jpg", ".mp4", ".png", ".svg", ".webp")


def distributions() -> list[str]:
    """Return the folders of the distributions of a kit, beside core."""
    return [*TESTED, *NEEDED]


def test_files() -> dict[str, list[str]]:
    """Return group → paths of the files with tests of the mark gpu. A group runs in a process of its own."""
    marked = [name for name in tracked("*/test_*.py") if MARK.search((ROOT / name).read_text())]
    found = {"core": [each for each in marked if each.startswith("tests/")]}
    for folder in TESTED:
        files = [each for each in marked if each.startswith(f"{folder}/")]
        contract = f"{folder}/tests/test_conformance.py"
        if (ROOT / contract).exists() and on_gpus(folder):
            files.append(contract)
        found[folder] = files
    return found


def on_gpus(folder: str) -> bool:
    """Return whether the contract tests of a backend run on a GPU."""
    return any('"gpu"' in each.read_text() for each in (ROOT / folder).glob("*/conformance.py"))


def tracked(*patterns: str) -> list[str]:
    """Return the files of git that match, by path."""
    command = ["git", "ls-files", "-z", "--", *patterns]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in found.split("\0") if name and (ROOT / name).is_file()]


def travels(name: str) -> bool:
    """Return whether a file of the checkout is part of a kit."""
    group = name.split("/")[0]
    if name.startswith((*BEHIND, ".")) or name.endswith(PICTURES):
        return False
    if group in ("backends", "plugins"):
        # The code itself comes as wheels.
        folder = "/".join(name.split("/")[:2])
        return folder in distributions() and "/tests/" in name
    return "/" not in name or group in ("tests", "benchmarks")


def archive(file: Path) -> None:
    """Write the tests, the benchmarks and the configuration of pytest to a compressed archive."""
    with tarfile.open(file, "w:gz") as found:
        for name in tracked():
            if travels(name):
                found.add(ROOT / name, name, recursive=False)


def commit() -> str:
    """Return the commit of the checkout, with a + if files differ from it."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
