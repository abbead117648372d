"""Description of one model version: its configuration, what was added to the file, and its stages."""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING, Any

from google.protobuf import text_format

from core.config import ModelConfig, parse_text
from core.errors import CoreError, not_found
from core.request import NEWEST
from frontends.commands.explain import stages

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion
    from core.server import InferenceServer

_FILE = "config.pbtxt"
_LONGEST = 256 * 1024  # characters of a file that is shown


def version_of(server: InferenceServer, name: str, number: int) -> ModelVersion:
    """Return a version that serves, the newest for NEWEST. Raises CoreError(NOT_FOUND) for others."""
    found = [
        each
        for each in server.models.versions()
        if name in (each.key, each.name)
        and each.state == "READY"
        and number in (NEWEST, each.version)
    ]
    if not found:
        which = "" if number == NEWEST else f" version {number}"
        raise not_found(f"model '{name}'{which} does not serve; load it first")
    return max(found, key=lambda each: each.version)


async def described(server: InferenceServer, version: ModelVersion) -> dict[str, Any]:
    """Return configuration, file and stages of a version as values for JSON.

    lines    of the completed configuration: (mark, text); the mark is "+" for what the file does not have,
             "-" for what the server has replaced, else " "
    file     text of config.pbtxt; "" if there is none, or if a load request has brought the configuration
    stages   (name, file of the code, what it does) of what a request passes, in this order
    steps    of an ensemble: model, and its tensor → the ensemble's
    """
    text, lines = await asyncio.to_thread(_compared, version, server.options.model_config_name)
    passed = await asyncio.to_thread(stages, version, server.options)
    return {
        "model": version.key,
        "version": version.version,
        "file": text,
        "overridden": version.source.overridden,
        "lines": lines,
        "stages": [list(stage) for stage in passed],
        "steps": [
            {
                "model": step.model_name,
                "inputs": dict(step.input_map),
                "outputs": dict(step.output_map),
            }
            for step in version.config.ensemble_scheduling.step
        ],
    }


def _compared(version: ModelVersion, name: str) -> tuple[str, list[list[str]]]:
    """Return the text of the file, and the marked lines of the configuration. Worker thread."""
    text, written = "", version.source.config
    if not version.source.overridden:
        try:
            text = _file(version, name)
            written = parse_text(text, _FILE) if text else ModelConfig()
        except (CoreError, OSError, UnicodeDecodeError):
            text = ""
    before = _lines(written)
    after = _lines(version.config)
    found: list[list[str]] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            found += [[" ", line] for line in after[start:end]]
        else:
            found += [["-", line] for line in before[first:last]]
            found += [["+", line] for line in after[start:end]]
    return text[:_LONGEST], found


def _file(version: ModelVersion, name: str) -> str:
    folder = version.directory
    paths = [folder / "configs" / f"{name}.pbtxt"] if name else []
    for path in (*paths, folder / _FILE):
        if path.is_file():
            return path.read_text()
    return ""


def _lines(config: ModelConfig) -> list[str]:
    return text_format.MessageToString(config).splitlines()
