"""Compile the .proto files beside this one: python -m frontends.grpc.protocol.compile

Writes grpc_service.binpb and health.binpb and their descriptions for type checkers. Needs
grpcio-tools, which nothing else needs: the results are committed.
"""

from __future__ import annotations

from pathlib import Path

from core.config.compile import compiled

FOLDER = Path(__file__).resolve().parent
STUBS = {"grpc_service.proto": "messages.pyi", "health.proto": "health_messages.pyi"}


def results() -> dict[str, bytes]:
    """Name of each file that follows from the .proto files → what it must hold.

    Raises ImportError without grpcio-tools.
    """
    found: dict[str, bytes] = {}
    for proto, stub in STUBS.items():
        descriptors, text = compiled(FOLDER / proto)
        # The generator cannot know that the messages of the other file have a home of their own.
        text = text.replace("import model_config_pb2 as", "from core.config import messages as")
        text = text.replace("`make proto`", "frontends/grpc/protocol/compile.py")
        found[Path(proto).with_suffix(".binpb").name] = descriptors
        found[stub] = text.encode()
    return found


def main() -> None:
    for name, content in results().items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
