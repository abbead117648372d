"""Description of one model version: its configuration, what was added to the file, and its stages."""

from __future__ import annotations

import asyncio
import difflib
import re
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
_NAME = re.compile(r"[^\W\d][\w.:]*|(?<=`)[^`]+(?=`)")  # a tensor in a condition
_LOOP = re.compile(r"(loop\[\d+\]\.)steps")
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
    steps    of an ensemble: model, its tensor → the ensemble's, its condition as text, and the tensors that
             this and its fallbacks read
    loops    of an ensemble: the first and the last of its steps, what its parameters say
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
        "steps": described_steps(version.config),
        "loops": described_loops(version.config),
    }


def described_steps(config: ModelConfig) -> list[dict[str, Any]]:
    """Return the steps of an ensemble as `described` does."""
    steps = config.ensemble_scheduling.step
    made = {tensor for step in steps for tensor in step.output_map.values()}
    found = []
    for index, step in enumerate(steps):
        said = _parameters(config, f"step[{index}].")
        texts = [f"{name} {said[name]}" for name in ("if", "unless") if name in said]
        read = {
            *_NAME.findall(" ".join([*texts, *_fallbacks(said.get("else", ""))])),
            *said.values(),
        }
        found.append(
            {
                "model": step.model_name,
                "inputs": dict(step.input_map),
                "outputs": dict(step.output_map),
                "condition": " ".join(texts),
                "reads": sorted((read & made) - set(step.output_map.values())),
            }
        )
    return found


def _fallbacks(text: str) -> list[str]:
    """Return the tensors that stand for others: `a` of "a -> b"."""
    return [pair.partition("->")[0].strip() for pair in text.split(",")]


def described_loops(config: ModelConfig) -> list[dict[str, Any]]:
    """Return the loops of an ensemble as `described` does."""
    found = []
    for key in sorted(config.parameters):
        if (match := _LOOP.fullmatch(key)) is None:
            continue
        said = _parameters(config, match[1])
        ends = [int(each) for each in said["steps"].split("-")]
        found.append(
            {
                "first": ends[0],
                "last": ends[-1],
                "while": said.get("while", ""),
                "turns": int(said["max_turns"]),
            }
        )
    return found


def _parameters(config: ModelConfig, start: str) -> dict[str, str]:
    """Return the parameters whose names begin with `start`, by the rest of their names."""
    return {
        key.removeprefix(start): value.string_value.strip()
        for key, value in config.parameters.items()
        if key.startswith(start)
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
