"""`core formats`: the files that identify a model's backend, and the files that several backends claim."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from core import plugins
from core.config import Format

summary = "list the files that belong to a backend without a config.pbtxt"

RULE = (
    "A folder with several of these files is for the backend of the first one in this list. Files without a "
    "position come last, and share it:\na model with files of two such backends names one with 'backend' in "
    "config.pbtxt."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(namespace: argparse.Namespace) -> int:
    """Print a line for each format (file, backend, notes) in the order of precedence, then RULE; return 0."""
    rows = claims()
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    for file, backend, text in rows:
        print(f"{file:{widths[0]}}  {backend:{widths[1]}}  {text}".rstrip())
    print(f"\n{RULE}")
    return 0


def claims() -> list[tuple[str, str, str]]:
    """Return (file, backend, notes) of each format, in the order in which core searches a folder for them."""
    known = list(plugins.formats())
    return [(each.file, each.backend, _text(each, known)) for each in known]


def _text(claim: Format, known: Sequence[Format]) -> str:
    forms = [("file", claim.may_be_file), ("folder", claim.may_be_folder)]
    words = [" or ".join(name for name, may in forms if may)]
    words += [f"position {claim.order}"] if claim.order < math.inf else []
    words += [] if plugins.is_there(claim.backend) else ["the backend is not installed"]
    rivals = [each for each in known if each.file == claim.file and each.backend != claim.backend]
    for rival in rivals:
        if rival.order == claim.order:
            words.append(
                f"'{rival.backend}' claims it too: name one with 'backend' in config.pbtxt"
            )
        elif rival.order < claim.order:
            words.append(
                f"'{rival.backend}' gets it, unless config.pbtxt has backend: \"{claim.backend}\""
            )
        else:
            words.append(f"'{rival.backend}' claims it too and does not get it")
    return "; ".join(words)
