"""python -m core token: a new token for somebody. The token is shown once; the file has its hash."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from core.access.limits import Limits
from core.access.tokens import line_of, new_token, read_tokens
from core.errors import CoreError


def issue(wanted: argparse.Namespace) -> int:
    """Print a token, and its line or where that is; the exit status.

    The token is on stdout, all else on stderr: `TOKEN=$(python -m core token …)`.
    """
    token = new_token()
    limits = Limits(wanted.rate, wanted.burst, wanted.concurrent)
    try:
        line = line_of(wanted.name, wanted.role, token, limits)
        if wanted.file is None:
            print(f"line for --auth-tokens:\n{line}", file=sys.stderr)
        else:
            _append(wanted.file, line)
            print(f"'{wanted.name}' is in {wanted.file}", file=sys.stderr)
    except (CoreError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(token)
    return 0


def _append(path: Path, line: str) -> None:
    """Add a line. Raises CoreError(INVALID) for a file that is none of tokens, OSError."""
    before = path.read_text() if path.exists() else ""
    read_tokens(before, str(path))
    gap = "\n" if before and not before.endswith("\n") else ""
    # Only its owner reads a new one: who has what is nobody else's business.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
        file.write(f"{gap}{line}\n")
