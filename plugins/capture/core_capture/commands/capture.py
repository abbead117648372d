"""The command `core capture`: show, export, warmup, drift."""

from __future__ import annotations

import argparse
import sys

from core.errors import invalid
from core_capture.commands import drift, export, show, warmup

summary = "show the requests of a capture, export them, and compare their tensors"

_PARTS = {"show": show, "export": export, "warmup": warmup, "drift": drift}


def arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    for name, module in _PARTS.items():
        part = parts.add_parser(name, help=module.summary, description=module.summary)
        part.add_argument(
            "capture",
            metavar="CAPTURE",
            help="folder or file of --capture; FOLDER@FROM..TO is a window of it, in UTC",
        )
        module.arguments(part)


def run(namespace: argparse.Namespace) -> int:
    """Run the part that is named. Bytes that are no records are reported on stderr."""
    reader = drift.opened(namespace.capture)
    try:
        status: int = _PARTS[namespace.part].run(reader, namespace)
        return status
    except ValueError as error:
        raise invalid(str(error)) from None
    finally:
        for loss in reader.losses:
            print(loss, file=sys.stderr)
