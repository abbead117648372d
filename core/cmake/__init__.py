"""Where CMake finds core: what native backends are built with.

A backend that scikit-build-core builds finds it by itself, through the entry point `cmake.prefix`. For other
builds: `cmake -Dcore_DIR=$(python -m core.cmake) …`.
"""

from pathlib import Path


def folder() -> Path:
    """Return the folder of coreConfig.cmake."""
    return Path(__file__).resolve().parent
