"""`core version`: the versions that a report of a problem needs."""

from __future__ import annotations

import argparse
import platform

summary = "print the version"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(namespace: argparse.Namespace) -> int:
    """Print the versions of core, of its ABI for native backends and of Python."""
    import core
    from core.native.callbacks import ABI_VERSION

    python = platform.python_version()
    print(f"core {core.__version__}, backend ABI {ABI_VERSION}, Python {python}")
    return 0
