"""`core token`: create a token, and print it once. The file of tokens holds its hash."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from core.errors import CoreError
from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of, new_token, read_tokens

summary = "make a token, and its line for --auth-tokens"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="who gets it")
    parser.add_argument(
        "--role",
        action="append",
        required=True,
        help="infer, read or manage; may be given several times",
    )
    parser.add_argument("--file", type=Path, help="append the line to it; else it is printed")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second")
    parser.add_argument("--burst", type=float, default=0.0, help="requests at once after a pause")
    parser.add_argument("--concurrent", type=int, default=0, help="requests in flight")
    parser.add_argument("--tokens", type=int, default=0, help="tokens of language models a minute")


def run(namespace: argparse.Namespace) -> int:
    """Create a token, and print it; append its line to --file, or print the line. Return the exit status.

    Only the token goes to stdout, so that `TOKEN=$(core token …)` works; all other text goes to stderr.
    """
    token = new_token()
    limits = Limits(namespace.rate, namespace.burst, namespace.concurrent, namespace.tokens)
    try:
        line = line_of(namespace.name, namespace.role, token, limits)
        if namespace.file is None:
            print(f"line for --auth-tokens:\n{line}", file=sys.stderr)
        else:
            _append(namespace.file, line)
            print(f"'{namespace.name}' is in {namespace.file}", file=sys.stderr)
    except (CoreError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(token)
    return 0


def _append(path: Path, line: str) -> None:
    """Append a line. Raises CoreError(INVALID) if the file is not a valid file of tokens, and OSError."""
    before = path.read_text() if path.exists() else ""
    read_tokens(before, str(path))
    gap = "\n" if before and not before.endswith("\n") else ""
    # Only the owner may read a new file: it contains names and roles.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
        file.write(f"{gap}{line}\n")
