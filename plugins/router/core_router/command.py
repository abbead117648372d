"""`core router --servers=…`: one address for several servers."""

from __future__ import annotations

import argparse

from core_router import options as _options

summary = "one address for several servers, which each request reaches by its model"


def arguments(parser: argparse.ArgumentParser) -> None:
    _options.declare(parser)


def run(namespace: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; return the exit status. Raises CoreError for wrong options."""
    from core_router.program import serve  # needs aiohttp, which the list of commands does not

    return serve(_options.RouterOptions.of(namespace))
