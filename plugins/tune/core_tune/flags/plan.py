"""plan_of: what a command line asks for."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core_bench.data.readers import intervals_of
from core_bench.flags.sides import side_of
from core_bench.plan import Objective, Side

from core.errors import invalid
from core_tune.flags.table import parse

_MINUTES = 10.0
_LONG = 15.0  # times the objective
_ROUND_S = (1.0, 3.0)


@dataclass(frozen=True)
class Plan:
    """What a command line asks for.

    intervals   pattern of the times between requests, with an average of 1; () for random ones
    folder      of the model, for a server of its own; None for a running one
    instances … workers   values to combine; None for the default ones
    write       config.pbtxt to write; None for no file
    online      send nothing, and look at a running server every `every_s` seconds; `seconds` may be infinite
    files       of reports by their form: "csv", "html", "json"; "-" for the standard output
    """

    side: Side
    objective: Objective
    intervals: Sequence[float]
    folder: Path | None
    serve_flags: Sequence[str]
    instances: Sequence[int] | None
    batches: Sequence[int] | None
    delays_us: Sequence[int] | None
    parts: Sequence[int] | None
    threads: Sequence[int] | None
    kinds: Sequence[str] | None
    workers: Sequence[int] | None
    measurements: int
    seconds: float
    round_s: float
    write: Path | None
    apply: bool
    online: bool
    every_s: float
    files: Mapping[str, str]


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
    serve_flags = shlex.split(flags.serve_flags)
    if flags.workers and folder is None:
        raise invalid(
            "--workers restarts the server, so it needs the folder of the model: core tune models/MODEL"
        )
    if any(each.partition("=")[0] == "--workers" for each in serve_flags):
        raise invalid("leave --workers out of --serve-flags; core tune has --workers 1,2")
    if folder is not None and flags.apply:
        raise invalid("--apply changes a running server; for a folder use --write")
    if flags.online:
        _check_online(flags, folder)
    write = None
    if flags.write is not None:
        write = _written(flags.write, folder)
    side = side_of(flags)
    return Plan(
        side=side,
        objective=flags.slo,
        intervals=_intervals(flags, side),
        folder=folder,
        serve_flags=serve_flags,
        instances=flags.instances,
        batches=flags.batch_sizes,
        delays_us=flags.delays,
        parts=flags.wait_for,
        threads=flags.framework_threads,
        kinds=flags.kinds,
        workers=flags.workers,
        measurements=flags.measurements,
        seconds=60 * (flags.minutes or (math.inf if flags.online else _MINUTES)),
        round_s=flags.measurement_interval or _round_s(flags.slo),
        write=write,
        apply=flags.apply,
        online=flags.online,
        every_s=flags.every,
        files=_files(flags),
    )


def _check_online(flags: argparse.Namespace, folder: Path | None) -> None:
    """Raise CoreError for flags that --online does not go with."""
    if folder is not None:
        raise invalid(
            "--online watches a running server: name its model, and the server with -u HOST:PORT"
        )
    for name in ("framework_threads", "kinds"):
        if getattr(flags, name):
            flag = name.replace("_", "-")
            raise invalid(f"--online changes what changes in place; leave out --{flag}")
    for name in ("csv", "html"):
        if getattr(flags, name):
            raise invalid(f"--online measures nothing; leave out --{name}, --json has its changes")


def _intervals(flags: argparse.Namespace, side: Side) -> tuple[float, ...]:
    """Return the pattern of a file or a capture. Raises CoreError if one is asked for that is not there."""
    if flags.request_intervals and flags.arrivals == "random":
        raise invalid("--request-intervals is a pattern of times; leave out --arrivals random")
    found = flags.request_intervals
    if not found and flags.arrivals != "random":
        found = intervals_of(side.input_data, side.model)
        if not found and flags.arrivals == "recorded":
            raise invalid("--arrivals recorded needs recorded traffic: --input-data CAPTURE")
    if not found:
        return ()
    average = sum(found) / len(found)
    return tuple(each / average for each in found)


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


def _files(flags: argparse.Namespace) -> dict[str, str]:
    named = {"csv": flags.csv, "html": flags.html, "json": flags.json}
    found = {form: path for form, path in named.items() if path}
    for path in found.values():
        if path != "-" and (not Path(path).parent.is_dir() or Path(path).is_dir()):
            raise invalid(f"cannot write '{path}': its folder does not exist, or it is one")
    if list(found.values()).count("-") > 1:
        raise invalid("only one of --csv, --html and --json can go to the standard output")
    return found
