"""The parts of `.ci/gpu_kit`, which is no package, and wheels that tests make."""

import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KIT = ROOT / ".ci" / "gpu_kit"


def module(file):
    """Return a module of the kit's folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"gpu_kit_{file.stem}", file)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # where dataclasses look
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(file.parent))
        spec.loader.exec_module(found)
    return found


contents, needs, making = (module(KIT / f"{name}.py") for name in ("contents", "needs", "__main__"))
results = module(KIT / "carried" / "gpu_kit_results.py")
run = module(KIT / "carried" / "run.py")


def wheel(folder, name, version="1.0", requires=(), files=()):
    """Write a wheel; return its path."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    written = {
        f"{name}-{version}.dist-info/METADATA": head
        + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        **dict(files),
    }
    record = f"{name}-{version}.dist-info/RECORD"
    written[record] = "".join(f"{each},,\n" for each in [*written, record])
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in written.items():
            archive.writestr(each, text)
    return path
