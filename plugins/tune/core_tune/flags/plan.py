"""plan_of: what a command line asks for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core_bench.flags.sides import side_of
from core_bench.plan import Objective, Side

from core.errors import invalid
from core_tune.flags.table import parse

_LONG = 15.0  # times the objective
_ROUND_S = (1.0, 3.0)


@dataclass(frozen=True)
class Plan:
    """What a command line asks for.

    folder      of the model, for a server of its own; None for a running one
    instances, batches, delays_us   values to combine; None for the default ones
    write       config.pbtxt to write; "" for that of `folder`; None for no file
    """

    side: Side
    objective: Objective
    folder: Path | None
    serve_flags: Sequence[str]
    instances: Sequence[int] | None
    batches: Sequence[int] | None
    delays_us: Sequence[int] | None
    measurements: int
    seconds: float
    round_s: float
    write: Path | None
    apply: bool
    json: str | None


def plan_of(arguments: Sequence[str]) -> Plan:
    """Return the plan. Raises CoreError for flags that contradict each other; SystemExit for wrong ones."""
    flags = parse(arguments)
    if flags.slo is None:
        raise invalid("core tune needs an objective, such as --slo p99=20ms")
    if flags.service_kind != "triton":
        raise invalid(
            f"--service-kind={flags.service_kind}: core tune sends requests of the v2 protocol"
        )
    if not (flags.positional_model or flags.model):
        raise invalid("name a model, or its folder: core tune MODEL --slo p99=20ms")
    folder = _folder(flags.positional_model, bool(flags.url))
    if folder is not None:
        flags.positional_model = folder.name
    elif flags.serve_flags:
        raise invalid("--serve-flags starts a server, but no folder of a model is named")
    if folder is not None and flags.apply:
        raise invalid("--apply changes a running server; for a folder use --write")
    write = None
    if flags.write is not None:
        write = _written(flags.write, folder)
    return Plan(
        side=side_of(flags),
        objective=flags.slo,
        folder=folder,
        serve_flags=shlex.split(flags.serve_flags),
        instances=flags.instances,
        batches=flags.batch_sizes,
        delays_us=flags.delays,
        measurements=flags.measurements,
        seconds=60 * flags.minutes,
        round_s=flags.measurement_interval or _round_s(flags.slo),
        write=write,
        apply=flags.apply,
        json=_writable(flags.json),
    )


def _round_s(objective: Objective) -> float:
    """Return the time of a round: within it, the queue of an overloaded server must pass the objective."""
    return min(max(_LONG * objective.seconds, _ROUND_S[0]), _ROUND_S[1])


def _folder(text: str | None, has_url: bool) -> Path | None:
    """Return the folder of a model; None for a name. Raises CoreError for another folder."""
    if not text or has_url:
        return None
    path = Path(text)
    if not path.is_dir():
        if "/" in text or path.is_file():
            raise invalid(f"'{text}' is no folder of a model; `core init` makes one of a file")
        return None
    path = path.resolve()
    versions = [each for each in path.iterdir() if each.is_dir() and each.name.isdecimal()]
    if not versions and not (path / "config.pbtxt").is_file():
        models = sorted(each.name for each in path.iterdir() if (each / "config.pbtxt").is_file())
        hint = f"; name one of its models: {text}/{models[0]}" if models else ""
        raise invalid(f"'{text}' has neither a version folder nor a config.pbtxt{hint}")
    return path


def _written(text: str, folder: Path | None) -> Path:
    if text:
        path = Path(text)
    elif folder is not None:
        path = folder / "config.pbtxt"
    else:
        raise invalid("--write needs the path of config.pbtxt, since the server's is not known")
    if not path.parent.is_dir() or path.is_dir():
        raise invalid(f"cannot write '{path}': its folder does not exist, or it is one")
    return path


def _writable(text: str | None) -> str | None:
    if text and text != "-" and (not Path(text).parent.is_dir() or Path(text).is_dir()):
        raise invalid(f"cannot write '{text}': its folder does not exist, or it is one")
    return text
