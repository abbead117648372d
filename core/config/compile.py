"""Compile a .proto for the private pool: `make proto`, or

    python core/config/compile.py core/config/model_config.proto core/config/messages.pyi

writes model_config.binpb beside the .proto (a descriptor set without the files that it imports)
and, if a second path is given, a stub for type checkers. Needs grpcio-tools, which nothing else
needs: both results are committed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

INCLUDES = Path(__file__).resolve().parent  # other files import "model_config.proto"

_STUB_HEAD = """\
# Generated from {name} by `make proto`; not to be edited.
# ruff: noqa
# fmt: off
# mypy: disable-error-code="type-arg, no-untyped-def, misc"
"""


def compiled(source: Path) -> tuple[bytes, str]:
    """Descriptor set and stub of a .proto. Raises ImportError without grpcio-tools."""
    from grpc_tools import protoc  # type: ignore[import-untyped]  # only who changes a .proto has it

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        status = protoc.main(
            [
                "protoc",
                f"-I{source.parent}",
                f"-I{INCLUDES}",
                f"-I{Path(protoc.__file__).parent / '_proto'}",
                f"--descriptor_set_out={target / 'set'}",
                f"--pyi_out={target}",
                source.name,
            ]
        )
        if status != 0:
            raise SystemExit(f"{source} does not compile")
        stub = (target / f"{source.stem}_pb2.pyi").read_text(encoding="utf-8")
        return (target / "set").read_bytes(), _STUB_HEAD.format(name=source.name) + stub


def main(source: str, stub: str | None = None) -> None:
    descriptors, text = compiled(Path(source))
    Path(source).with_suffix(".binpb").write_bytes(descriptors)
    if stub is not None:
        Path(stub).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
