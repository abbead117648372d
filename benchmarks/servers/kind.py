"""Kind: the interface of a server program under test.

KINDS ─► [Kind] ─► Launch ─► Running.  A kind installs its server and starts it with the models of a fleet. It
does not measure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

# The models of the servers: fleet → (model repositories for Triton and core, or models by name).
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
    """A command that starts a server, and its additional environment variables."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Kind(ABC):
    """One server program.

    name     name for --server
    forms    supported forms of requests: "http-json", "http-binary", "grpc"
    fleets   supported fleets
    counts   whether it has Triton's statistics, which count perf_analyzer's requests
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
        """Install the server; return the versions of its important parts, for the report.

        Raises Missing if that is not possible on this machine.
        """

    @abstractmethod
    def launch(self, fleet: str, ports: Ports, folder: Path) -> Launch:
        """Return the command to start the server with the models of `fleet`; it may write to `folder`."""
