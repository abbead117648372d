"""Kind: what a server under test is, whoever made it.

KINDS ─► [Kind] ─► Launch ─► Running.  A kind knows how its server is installed and started with the
models of a fleet; it knows nothing of measuring.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

# What servers are started with: fleet → (model repositories for Triton and core, or models by name).
FLEETS: Mapping[str, Sequence[str]] = {
    "all": ("shared", "onnx"),
    "many": ("many",),
    "one": ("one",),
    "python": ("python",),
}


@dataclass(frozen=True)
class Ports:
    http: int
    grpc: int
    metrics: int


@dataclass(frozen=True)
class Launch:
    """A command that starts a server, and what it adds to the environment."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Kind(ABC):
    """One server program.

    name     as --server says it
    forms    in which it can be asked: "http-json", "http-binary", "grpc"
    fleets   that it can serve
    counts   whether it has Triton's statistics, by which perf_analyzer's requests are counted
    """

    name: ClassVar[str]
    forms: ClassVar[Sequence[str]] = ("http-json", "http-binary", "grpc")
    fleets: ClassVar[Sequence[str]] = tuple(FLEETS)
    counts: ClassVar[bool] = False

    def __init__(self, cache: Path, repositories: Path):
        self.cache = cache
        self.repositories = repositories

    @abstractmethod
    def install(self) -> Mapping[str, str]:
        """Make the server startable; the versions of what matters, for the report.

        Raises Missing when that cannot be done here.
        """

    @abstractmethod
    def launch(self, fleet: str, ports: Ports, folder: Path) -> Launch:
        """How the server starts with the models of `fleet`; `folder` is its own to write to."""
