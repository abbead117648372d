"""Compile C++ sources of the benchmark to programs and libraries in the cache folder.

The name of a result depends on source and flags: it is built again only when they change.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.missing import Missing, program


def compiled(source: Path, cache: Path, flags: Sequence[str]) -> Path:
    """Compile `source` with g++ and return the path of the result. Raises Missing with g++'s errors."""
    compiler = program("g++", "g++")
    key = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    result = cache / "compiled" / f"{source.stem}-{key}"
    if result.exists():
        return result
    result.parent.mkdir(parents=True, exist_ok=True)
    half_made = result.with_suffix(".part")
    done = subprocess.run(
        [compiler, "-O2", "-std=c++17", "-o", str(half_made), str(source), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Missing(f"{source.name} does not compile: {done.stderr.strip()[-600:]}")
    half_made.rename(result)
    return result


def package_flags(package: str, debian: str) -> list[str]:
    """Return compiler and linker flags of a library. Raises Missing if it is not installed."""
    done = subprocess.run(
        [program("pkg-config", "pkg-config"), "--cflags", "--libs", package],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Missing(f"no library {package}; try: apt-get install {debian}")
    return done.stdout.split()
