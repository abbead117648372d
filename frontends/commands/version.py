"""`core version`: the versions that a report of a problem needs."""

from __future__ import annotations

import argparse
import platform

import core

summary = "print the version"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(namespace: argparse.Namespace) -> int:
    """Print the versions; return 0."""
    print(versions())
    return 0


def versions() -> str:
    """Return the versions of core, of its ABI for native backends and of Python, on one line."""
    # Imported here: the list of commands does not need it.
    from core.native.callbacks import ABI_VERSION

    python = platform.python_version()
    return f"core {core.__version__}, backend ABI {ABI_VERSION}, Python {python}"
