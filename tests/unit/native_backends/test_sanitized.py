"""Core's code for native backends without Python, under the address and undefined behaviour sanitizers."""

import os
import subprocess
from pathlib import Path

import pytest
from unit.native_backends import playing

ROOT = Path(playing.HERE).parents[2]


def test_no_batch_and_no_backend_causes_invalid_memory_access(tmp_path):
    built = tmp_path / "driver"
    command = [
        *(os.environ.get("FUZZ_CXX") or playing.compiler()).split(),
        *("-std=c++17", "-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
        *(f"-I{ROOT}", f"-I{playing.INCLUDE}", "-pthread"),
        *(str(playing.HERE / "driver.cpp"), "-o", str(built)),
    ]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode and "error:" not in compiled.stderr:
        pytest.skip("the compiler here has no sanitizers")
    assert compiled.returncode == 0, compiled.stderr

    # Requests for more memory than there is are a part of the play.
    options = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
    done = subprocess.run([built], capture_output=True, text=True, check=False, env=options)

    assert done.returncode == 0, done.stderr[-5000:]
    assert int(done.stdout.split()[0]) > 500
