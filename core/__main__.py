"""python -m core: what is installed here, and whether it can be imported.

Exit status: 0 if everything can, 1 otherwise. `python -m core.serve` is the server.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

import core
from core import abi, plugins
from core.errors import CoreError

Row = tuple[str, str, str]


def main() -> int:
    """Print versions, backends and frontends; the exit status."""
    print(f"core {core.__version__}, backend ABI {abi.VERSION}, Python {platform.python_version()}")
    healthy = True
    for title, installed in (
        ("backends", plugins.available_backends()),
        ("frontends", plugins.frontends()),
    ):
        rows = [(name, plugin.distribution, _health(plugin)) for name, plugin in installed.items()]
        healthy &= all(health == "ok" for *_, health in rows)
        print(f"\n{title}:", *(_aligned(rows) or ["none"]), sep="\n  ")
    return 0 if healthy else 1


def _health(plugin: plugins.Plugin) -> str:
    try:
        plugin.load()
    except CoreError as error:
        return error.message
    return "ok"


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    return [f"{name:{widths[0]}}  {owner:{widths[1]}}  {health}" for name, owner, health in rows]


if __name__ == "__main__":
    sys.exit(main())
