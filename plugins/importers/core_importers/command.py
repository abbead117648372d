"""`core import`: the command line of this package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.errors import CoreError

summary = "write a model of TorchServe, MLflow, BentoML or LitServe into a repository"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a .mar archive, a folder with MLmodel, a model, Bento or tag of BentoML, or FILE.py with a "
        "LitAPI or a BentoML service; FILE.py:CLASS or FILE.py:CLASS.METHOD if it has several",
    )
    parser.add_argument("repository", type=Path, metavar="REPOSITORY", help="made if it is missing")
    parser.add_argument("--name", default="", help="of the model; else the name in the source")
    parser.add_argument(
        "--force", action="store_true", help="replace a model of that name in the repository"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let the server read pickles of this source: reading one runs the code in it",
    )
    parser.add_argument(
        "--environment",
        action="store_true",
        help="let the server install what the model needs into an environment of its own",
    )
    parser.add_argument(
        "--with",
        action="append",
        type=Path,
        default=[],
        dest="extras",
        metavar="PATH",
        help="a file or folder that a Python source reads, copied beside it; repeatable",
    )
    for kind in ("input", "output"):
        parser.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            dest=f"{kind}s",
            metavar="NAME:TYPE[DIMS]",
            help=f"an {kind} that the source does not describe, such as x:FP32[-1,4]; repeatable",
        )


def run(namespace: argparse.Namespace) -> int:
    """Write the model and print what it needs; return 1 if it cannot be imported."""
    from core_importers.importing import import_model
    from core_importers.report import lines_of
    from core_importers.wishes import Wishes

    wishes = Wishes(
        name=namespace.name,
        force=namespace.force,
        trusted=namespace.trust,
        environment=namespace.environment,
        extras=namespace.extras,
        inputs=namespace.inputs,
        outputs=namespace.outputs,
    )
    try:
        draft = import_model(namespace.source, namespace.repository, wishes)
    except (CoreError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines_of(draft, namespace.repository)))
    return 0
