"""The flags of core tune, in one parser. Those of server and requests are those of core bench."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from core_bench.flags.table import request_flags, server_flags
from core_bench.flags.values import count, duration, intervals, milliseconds, objective

from core_tune.flags import values

SUMMARY = "find the settings of a model with which it serves most requests within an objective"

_EPILOG = """\
Examples:
  core tune models/digits --slo p99=20ms            a server of its own, only for this
  core tune models/digits --slo p99=20ms --write    writes the best settings to config.pbtxt
  core tune digits -u localhost:8000 --slo p99=20ms a running server, with --model-control-mode=explicit
  core tune digits -u localhost:8000 --slo p99=20ms --online    keeps the objective while it serves

The exit status is 0 if settings keep the objective, 1 if none does, requests failed or the server was lost,
2 for a wrong command line, 130 after Ctrl-C or SIGTERM.
"""


def parser() -> argparse.ArgumentParser:
    """Return a parser of the whole command line, without abbreviations of flags."""
    made = argparse.ArgumentParser(
        "core tune",
        usage="core tune MODEL|FOLDER --slo p99=20ms [flags]   (core tune --help lists them)",
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "positional_model",
        nargs="?",
        metavar="MODEL|FOLDER",
        help="name of a model of a running server, or a model's folder",
    )
    _search(made.add_argument_group("search").add_argument)
    _online(made.add_argument_group("a server with its own traffic").add_argument)
    _results(made.add_argument_group("results").add_argument)
    server_flags(made.add_argument_group("server, as in core bench").add_argument)
    add = made.add_argument_group("requests, as in core bench").add_argument
    request_flags(add)
    add(
        "--arrivals",
        choices=("recorded", "random"),
        help="times of requests: the pattern of a capture, or that of many independent clients; "
        "the default is recorded for a capture",
    )
    add(
        "--request-intervals",
        type=intervals,
        metavar="FILE",
        help="a pattern of times: microseconds between requests, by line",
    )
    return made


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the flags. Raises SystemExit for unknown and wrong ones."""
    made = parser()
    flags, unknown = made.parse_known_args(list(arguments))
    if unknown:
        known = [name for action in made._actions for name in action.option_strings]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], known, 1)
        hint = f"did you mean {near[0]}?" if near else "core tune --help lists all flags"
        made.error(f"{unknown[0]} is not known; {hint}")
    return flags


def _search(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "--slo",
        type=objective,
        metavar="p99=20ms",
        help="the objective: a percentile or the average of the latency; required",
    )
    add(
        "--instances",
        type=values.counts,
        metavar="1,2,4",
        help="numbers of instances; the default is up to twice the processors",
    )
    add(
        "--batch-sizes",
        type=values.counts,
        metavar="1,8,32",
        help="largest batches; the default is the powers of two up to max_batch_size",
    )
    add(
        "--delays",
        type=values.durations,
        metavar="0,500us",
        help="of batches; the default is 0 and 2, 10 and 25 %% of the objective",
    )
    add(
        "--wait-for",
        type=values.parts,
        metavar="full,quarter",
        help="with a delay: wait for the largest batch, or for a quarter of it; the default is both",
    )
    add(
        "--framework-threads",
        type=values.counts,
        metavar="1,2,4",
        help="threads of an execution; the default is 1 up to the processors, if the backend has them",
    )
    add(
        "--kinds",
        type=values.kinds,
        metavar="cpu,gpu",
        help="of instances; the default is that of the model, and gpu for a folder where there are GPUs",
    )
    add(
        "--workers",
        type=values.counts,
        metavar="1,2",
        help="processes of the server, for a folder; the default is 1",
    )
    add("--measurements", type=count, default=40, metavar="N", help="at most; the default is 40")
    add("--minutes", type=values.minutes, metavar="N", help="at most; the default is 10")
    add(
        "-p",
        "--measurement-interval",
        type=milliseconds,
        metavar="MS",
        help="of a round, of which a measurement has 4; 1000, or up to 3000 for a long objective",
    )
    add(
        "--serve-flags",
        default="",
        metavar="FLAGS",
        help="of core-serve, for a folder: '--backend-config=…'",
    )


def _online(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "--online",
        action="store_true",
        help="send nothing: change a running server while it serves, until Ctrl-C or --minutes",
    )
    add(
        "--every",
        type=duration,
        default=10.0,
        metavar="10s",
        help="with --online: how often; the default is 10s",
    )


def _results(add) -> None:  # type: ignore[no-untyped-def]
    add(
        "--write",
        nargs="?",
        const="",
        metavar="FILE",
        help="write the best settings to config.pbtxt; FILE names that of a running server's model",
    )
    add(
        "--apply",
        action="store_true",
        help="leave a running server with the best settings; else it gets its own back",
    )
    add("--csv", metavar="FILE", help="a line for each measurement; - for the standard output")
    add("--html", metavar="FILE", help="one page with charts, which loads nothing")
    add("--json", metavar="FILE", help="everything that was measured; - for the standard output")
