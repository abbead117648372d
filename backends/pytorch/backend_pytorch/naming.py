"""Match names of the configuration to arguments and results of the program.

config.input, config.output ─► [naming] ─► places.  The rules are those of Triton's PyTorch backend: names of
the program; else `<anything>__<index>`; else the order of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend_pytorch.program import Port
from core.config import ModelConfig
from core.errors import CoreError, invalid

_INDEXED = re.compile(r".*?__(\d+)")


def config_inputs(config: ModelConfig) -> list[str]:
    """Return the names of all inputs of the program: of clients, of batch_input, controls, states."""
    names = [io.name for io in config.input]
    names += [name for each in config.batch_input for name in each.target_name]
    sequence = config.sequence_batching
    names += [control.name for control in sequence.control_input]
    names += [state.input_name for state in sequence.state]
    return names


def config_outputs(config: ModelConfig) -> list[str]:
    """Return the names of all outputs of the program: to clients, and as states."""
    names = [io.name for io in config.output]
    states = [state.output_name for state in config.sequence_batching.state]
    return names + [name for name in states if name not in names]


def places(
    names: Sequence[str], ports: Sequence[Port] | None, kind: str, model: str
) -> dict[str, int]:
    """Return {name of the configuration: index of the argument or result}.

    ports   of the program; None if they are unknown before a run
    kind    "input" or "output", for errors
    Raises CoreError(INVALID) for more names than ports, an index out of range, two names for one index, and
    a required input without a name.
    """
    found = _named(names, ports) or _indexed(names) or {name: i for i, name in enumerate(names)}
    if ports is not None:
        _check(found, ports, kind, model)
    if len(set(found.values())) < len(found):
        raise invalid(
            f"model '{model}': two of its {kind}s {', '.join(names)} have the same index behind '__'"
        )
    return found


def _named(names: Sequence[str], ports: Sequence[Port] | None) -> dict[str, int] | None:
    if ports is None:
        return None
    known = {name: i for i, port in enumerate(ports) for name in (port.name, *port.aliases)}
    if not all(name in known for name in names):
        return None
    return {name: known[name] for name in names}


def _indexed(names: Sequence[str]) -> dict[str, int] | None:
    matches = [_INDEXED.fullmatch(name) for name in names]
    if not all(matches):
        return None
    return {name: int(match[1]) for name, match in zip(names, matches, strict=True) if match}


def _check(found: dict[str, int], ports: Sequence[Port], kind: str, model: str) -> None:
    for name, index in found.items():
        if index >= len(ports):
            raise _wrong_number(len(found), ports, kind, model, f"'{name}' would be number {index}")
    missing = [
        port.name
        for index, port in enumerate(ports)
        if kind == "input" and not port.optional and index not in found.values()
    ]
    if missing:
        reason = f"config.pbtxt lacks {', '.join(missing)}"
        raise _wrong_number(len(found), ports, kind, model, reason)


def _wrong_number(
    count: int, ports: Sequence[Port], kind: str, model: str, reason: str
) -> CoreError:
    names = ", ".join(port.name for port in ports) or "none"
    return invalid(
        f"unable to load model '{model}', configuration expects {count} {kind}s, model provides "
        f"{len(ports)}: {names}; {reason}"
    )
