"""The agent "checksum": refuses a model whose files do not match the digests of its configuration.

    parameters { key: "MD5:1/model.onnx" value: "d726e132f91f16ebee703d96f6f73cb1" }
    parameters { key: "SHA256:labels.txt" value: "2c26b46b68ffc68ff99b453c1d304134…" }
    parameters { key: "require_all" value: "true" }

The first form is that of Triton's agent. Paths are relative to the model's folder.
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from core.errors import invalid, unsupported
from core.repository.agents.agent import AgentModel, RepositoryAgent
from core.repository.folder import files_of
from core.repository.source import is_configuration

_REQUIRE_ALL = "require_all"
_ALGORITHMS = {"md5": "MD5", "sha256": "SHA-256"}  # name in hashlib → name in messages
_CHUNK_BYTES = 1 << 20


class ChecksumAgent(RepositoryAgent):
    def load(self, model: AgentModel) -> None:
        """Raise CoreError for the first file that is missing, differs or, with require_all, has no digest."""
        wanted = {key: value for key, value in model.parameters.items() if key != _REQUIRE_ALL}
        listed = {_check(model.location, key, value) for key, value in wanted.items()}
        if model.is_true(_REQUIRE_ALL):
            for path in files_of(model.location):
                if path not in listed and not is_configuration(path):
                    raise invalid(
                        f"file {path} has no checksum in the configuration, and '{_REQUIRE_ALL}' is true"
                    )


def _check(location: Path, key: str, expected: str) -> str:
    """Raise CoreError unless a file has the digest `expected`; return its path in the form of `files_of`."""
    algorithm, colon, name = key.partition(":")
    if not colon:
        raise invalid(
            f"failed to parse key: {key}; it is <algorithm>:<file>, such as MD5:1/model.onnx"
        )
    if algorithm.lower() not in _ALGORITHMS:
        raise unsupported(f"Unsupported checksum algorithm: {algorithm}; there are MD5 and SHA256")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise invalid(f"the file of key '{key}' must lie in the model's folder")
    found = _digest(location / path, algorithm.lower(), name)
    if found != expected.strip().lower():
        raise invalid(
            f"Mismatched {_ALGORITHMS[algorithm.lower()]} hash for file {name}, expect: {expected}, "
            f"got: {found}"
        )
    return str(path)


def _digest(file: Path, algorithm: str, name: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=algorithm != "md5")
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise invalid(f"failed to open file for read {name}: {error.strerror}") from error
    return digest.hexdigest()
