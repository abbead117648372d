"""Reads the `parameters` of config.pbtxt that concern core, and warns of unknown ones.

    core.Backend(known_parameters=…) ─► [warn_of_slips] ─► log

Triton ignores a name that it does not know, and so does core, so that both serve the same repositories.
A warning makes typing errors visible.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from fnmatch import fnmatchcase

from core.backend import Backend
from core.completion import MAX_BATCH_SIZE
from core.config import ModelConfig
from core.errors import invalid
from core.pipeline.batching.rule import STRATEGY_PATH
from core.plugins import isolated_by

logger = logging.getLogger("core")

MODE = "EXECUTION_MODE"
ONE_CONNECTION = "sequences_keep_their_connection"
KNOWN = [MODE, ONE_CONNECTION, STRATEGY_PATH]  # a plugin appends those that it reads

_NEAR = 0.6  # similarity for a suggestion, if the name is unknown for certain
_NEARLY = 0.85  # similarity for a warning, if a pattern accepts the name


def wants_process(config: ModelConfig) -> bool:
    """Return whether a model asks for processes of its own: its parameter EXECUTION_MODE is "process"."""
    mode = config.parameters.get(MODE)
    return mode is not None and mode.string_value.lower() == "process"


def refuse_scattered_sequences(config: ModelConfig, workers: int) -> None:
    """Raise CoreError(INVALID) for sequences with workers, unless iterative or with ONE_CONNECTION true."""
    if workers == 1 or not config.HasField("sequence_batching"):
        return
    if config.sequence_batching.iterative_sequence:  # one client request is the whole sequence
        return
    promise = config.parameters.get(ONE_CONNECTION)
    if promise is None or promise.string_value.lower() != "true":
        raise invalid(
            f"model '{config.name}' has sequence_batching: the requests of a sequence must reach one "
            f"process, and --workers={workers} spreads connections over several; serve it with "
            f"--workers=1, or set its parameter '{ONE_CONNECTION}' to 'true' if clients send each "
            "sequence over one connection"
        )


def warn_of_slips(config: ModelConfig, backend: Backend) -> None:
    """Log a warning for each unknown or misspelt parameter, if the backend declares the names it knows."""
    if (known := _known(backend, "known_parameters")) is None:
        return
    for name in config.parameters:
        if text := slip(name, (*KNOWN, *known)):
            logger.warning(
                "model '%s': backend '%s' has no parameter '%s'%s",
                config.name,
                backend.name,
                name,
                text,
            )


def warn_of_settings(found: Iterable[str], backend: Backend) -> None:
    """Log a warning for each unknown or misspelt key of --backend-config, if the backend declares keys."""
    if (known := _known(backend, "known_settings")) is None:
        return
    for name in found:
        if text := slip(name, (MAX_BATCH_SIZE, *known)):
            logger.warning(
                "--backend-config=%s,%s: there is no such setting%s", backend.name, name, text
            )


def _known(backend: Backend, what: str) -> list[str] | None:
    """Return the names in a backend's attribute `what`, and in that of the backend that it isolates, if any.

    Return None if one of these attributes is None.
    """
    known: list[str] = []
    for each in (backend, isolated_by(backend)):
        if each is not None:
            if (names := getattr(each, what)) is None:
                return None
            known += names
    return known


def slip(found: str, known: Iterable[str]) -> str:
    """Return the end of a warning about the name `found`, or "" if no warning is due.

    known   names, and patterns with * for names that the backend passes on; a match gets a
            warning only if it is very similar to one of the names
    """
    known = tuple(known)
    if found in known:
        return ""
    # Names that differ only in case stay apart: EXECUTION_MODE is core's.
    names: dict[str, list[str]] = {}
    for name in known:
        if "*" not in name:
            names.setdefault(name.lower(), []).append(name)
    passed_on = any(fnmatchcase(found, pattern) for pattern in known if "*" in pattern)
    cutoff = _NEARLY if passed_on else _NEAR
    near = difflib.get_close_matches(found.lower(), names, 1, cutoff)
    meant = " or ".join(f"'{name}'" for name in names[near[0]]) if near else ""
    if passed_on:
        return f" of its own; is {meant} meant?" if meant else ""
    return "; it has no effect" + (f"; is {meant} meant?" if meant else "")
