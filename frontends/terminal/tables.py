"""Triton's startup tables in the log: agents, backends, models with their state, options.

models are loaded ─► [core_models_loaded] ─► log
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from core import plugins
from core.hookspecs import hookimpl
from core.options import Options
from core.repository.agents.known import agents_used
from core.telemetry import log
from frontends.terminal.options import NEVER, TerminalOptions

if TYPE_CHECKING:
    from core.backend import Backend
    from core.server import InferenceServer

Row = Sequence[str]

_PIPE_WIDTH = 100  # characters; a longer word makes a table wider


@hookimpl
def core_models_loaded(server: InferenceServer) -> None:
    """Log all tables with --terminal=never or a verbose log.

    Otherwise log nothing if the console is for a person, and the tables without that of the options if not.
    """
    terminal = TerminalOptions.of(server.options)
    complete = terminal.terminal == NEVER or server.options.log_verbose > 0
    if complete or not terminal.is_readable:
        _show_of(server, with_options=complete)


def _show_of(server: InferenceServer, *, with_options: bool) -> None:
    identity = server.metadata()
    completes = not server.options.disable_auto_complete_config
    defaults = {"auto-complete-config": str(completes).lower(), "default-max-batch-size": "4"}
    show(
        server.options,
        [
            ("server_id", identity["name"]),
            ("server_version", identity["version"]),
            ("server_extensions", " ".join(identity["extensions"])),
        ],
        agents_used(),
        [
            (name, _file_of(plugin, found), {**defaults, **found.config})
            for name, (plugin, found) in sorted(plugins.imported().items())
        ],
        server.manager.table(),
        with_options,
    )


def _file_of(plugin: plugins.Plugin, backend: Backend) -> str:
    if (file := plugins.file_of(backend)) is not None:
        return str(file)
    module = sys.modules.get(plugin.entries[0].module)
    return str(Path(getattr(module, "__file__", None) or ""))


def show(
    options: Options,
    identity: Iterable[tuple[str, str]],
    agents: Iterable[Row],
    backends: Iterable[tuple[str, str, dict[str, str]]],
    models: Iterable[Row],
    with_options: bool = True,
) -> None:
    """Write the tables to the log.

    identity   first rows of the options table: name and version of the server, extensions
    agents     name and origin of each repository agent in use
    backends   name, file and settings of each backend in use
    models     name, version and status of each model version
    with_options   whether to write the options table
    """
    width = _terminal_width(options)
    config = [
        (name, path, json.dumps({"cmdline": settings}, separators=(",", ":")))
        for name, path, settings in backends
    ]
    log.block(table(("Repository Agent", "Path"), agents, width))
    log.block(table(("Backend", "Path", "Config"), config, width))
    log.block(table(("Model", "Version", "Status"), models, width))
    if with_options:
        log.block(table(("Option", "Value"), [*identity, *option_rows(options)], width))


def table(headings: Row, rows: Iterable[Row], width: int | None = None) -> str:
    """Return rows under headings, in a frame.

    width   of the terminal in characters, which the table fits: columns wrap, within long words too. None for
            a file or a pipe: columns wrap between words, at 100 characters for the table or more if a long
            word needs them
    """
    cells = [[log.escaped(cell) for cell in row] for row in (headings, *rows)]
    needed = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    least = [0] * len(needed)
    if width is None:
        words = [" ".join(column).split() for column in zip(*cells, strict=True)]
        least = [max(map(len, found)) for found in words]
    room = (width or _PIPE_WIDTH) - 3 * len(needed) - 1 - sum(least)
    shares = shared_out([most - own for most, own in zip(needed, least, strict=True)], room)
    needed = [own + share for own, share in zip(least, shares, strict=True)]
    rule = "+" + "+".join("-" * (column + 2) for column in needed) + "+"
    lines = [rule, *_lines(cells[0], needed), rule]
    for row in cells[1:]:
        lines += _lines(row, needed)
    return "\n".join([*lines, rule])


def shared_out(needed: Sequence[int], room: int) -> list[int]:
    """Divide `room` among columns; return their widths. All are in characters.

    needed   width with which each column need not wrap; no column gets more
    Narrow columns get what they need, the others equal shares of the rest. Even without room, a column that
    needs something gets 1.
    """
    widths = [0] * len(needed)
    order = sorted(range(len(needed)), key=needed.__getitem__)
    for done, i in enumerate(order):
        widths[i] = min(needed[i], max(1, room // (len(order) - done)))
        room -= widths[i]
    return widths


def option_rows(options: Options) -> list[tuple[str, str]]:
    """Return (name, value) of each option in the options table, with the names that Triton uses."""
    rows = [
        (f"model_repository_path[{i}]", path) for i, path in enumerate(options.model_repository)
    ]
    rows.append(("model_control_mode", f"MODE_{options.model_control_mode.upper()}"))
    rows += [(f"startup_models_{i}", name) for i, name in enumerate(options.load_model)]
    rows += [
        ("strict_model_config", str(int(options.disable_auto_complete_config))),
        ("model_config_name", options.model_config_name),
        ("rate_limit", "OFF" if options.rate_limit == "off" else "EXEC_COUNT"),
    ]
    resources = [
        (name, count, device)
        for name, counts in sorted(options.rate_limit_resource.items())
        for device, count in sorted(counts.items())
    ]
    rows += [
        (f"rate_limit_resource[{i}]", f'{{"name":"{name}", "count":{count} "device":{device}}}')
        for i, (name, count, device) in enumerate(resources)
    ]
    size = options.value("pinned_memory_pool_byte_size")  # a plugin may have these options
    rows.append(("pinned_memory_pool_byte_size", str(size)))
    rows += [
        (f"cuda_memory_pool_byte_size{{{gpu}}}", str(size))
        for gpu, size in sorted(options.value("cuda_memory_pool_byte_size").items())
    ]
    capability = options.value("min_supported_compute_capability")
    rows += [
        ("min_supported_compute_capability", f"{capability:.1f}"),
        ("strict_readiness", str(int(options.strict_readiness))),
        ("exit_timeout", str(options.exit_timeout_secs)),
        ("cache_enabled", str(int(bool(options.cache_config)))),
    ]
    return rows


def _lines(row: Row, widths: Sequence[int]) -> list[str]:
    """Return the lines of one row, with frame; more than one if a cell is wider than its column."""
    cells = [
        textwrap.wrap(cell, max(1, width), break_on_hyphens=False) or [""]
        for cell, width in zip(row, widths, strict=True)
    ]
    return [
        "| "
        + " | ".join(part.ljust(width) for part, width in zip(line, widths, strict=True))
        + " |"
        for line in zip_longest(*cells, fillvalue="")
    ]


def _terminal_width(options: Options) -> int | None:
    """Return the width in characters of the terminal that the log goes to; None for a file or a pipe."""
    if options.log_file or not sys.stderr.isatty():
        return None
    return shutil.get_terminal_size().columns
