"""The command `core replay`."""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time

import orjson

from core.errors import invalid
from core_capture.commands import tls_flags
from core_capture.replay.compare import IDS, Comparison
from core_capture.replay.outcome import Sender
from core_capture.replay.pace import Pace
from core_capture.replay.plan import Plan
from core_capture.replay.report import as_json, report
from core_capture.replay.run import Replay, Results

summary = "send the requests of a capture again, and compare the answers"


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("capture", metavar="CAPTURE", help="folder or file of --capture")
    add("--url", default="localhost:8000", help="HTTP address of the server (%(default)s)")
    add("--grpc-url", default="localhost:8001", help="gRPC address of the server (%(default)s)")
    add(
        "--protocol",
        choices=("recorded", "http", "grpc"),
        default="recorded",
        help="over which the requests are sent (%(default)s)",
    )
    add(
        "--speed",
        default="1",
        metavar="FACTOR",
        help="1 is the recorded pace, 2 twice as fast; "
        "max: as fast as possible, in the recorded order (%(default)s)",
    )
    add(
        "--keep-order",
        action="store_true",
        help="let a request wait for those that had ended before it began; always with --speed max",
    )
    add("--model", action="append", default=[], help="only requests for this model; repeatable")
    add("--limit", type=int, default=0, metavar="N", help="only the first N requests")
    add(
        "--compare",
        choices=("values", "bytes", "none"),
        default="values",
        help="what must be equal: the values of tensors, or all bytes of an answer (%(default)s)",
    )
    add(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="T",
        help="difference of floats that counts as equal: "
        "absolute, or as a share of the recorded value",
    )
    add(
        "--ignore",
        action="append",
        metavar="MEMBER",
        help=f"member of JSON that is not compared; repeatable ({', '.join(IDS)})",
    )
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME: VALUE",
        help="header field in place of the recorded one, such as a token; repeatable",
    )
    add(
        "--concurrency",
        type=int,
        default=1000,
        metavar="N",
        help="most requests at a time (%(default)s)",
    )
    add(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds for one answer (%(default)s)",
    )
    add("--json", action="store_true", help="print the report as JSON")
    tls_flags.declare(parser)


def run(namespace: argparse.Namespace) -> int:
    """Replay a capture. Return 0 if all answers are here and none differs, else 1."""
    plan = Plan(namespace.capture, namespace.model, "", namespace.limit)
    for loss in plan.losses:
        print(loss, file=sys.stderr)
    if not plan.items:
        raise invalid(f"'{namespace.capture}' has no requests of the given kind")
    results = asyncio.run(_replayed(namespace, plan))
    if namespace.json:
        found = as_json(results, plan.duration_ns)
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    else:
        print(report(results, plan.duration_ns))
    return 0 if results.good else 1


async def _replayed(namespace: argparse.Namespace, plan: Plan) -> Results:
    from core_capture.replay.grpc_sender import GrpcSender
    from core_capture.replay.http_sender import HttpSender

    headers = dict(_header(each) for each in namespace.header)
    senders: dict[str, Sender] = {
        "http": HttpSender(
            namespace.url, headers, namespace.timeout, tls_flags.https_of(namespace)
        ),
        "grpc": GrpcSender(
            namespace.grpc_url, headers, namespace.timeout, tls_flags.grpc_of(namespace)
        ),
    }
    comparison = Comparison(
        namespace.compare == "bytes",
        namespace.tolerance,
        IDS if namespace.ignore is None else namespace.ignore,
    )
    replay = Replay(
        plan,
        senders,
        None if namespace.compare == "none" else comparison,
        Pace(_speed(namespace.speed), namespace.keep_order),
        "" if namespace.protocol == "recorded" else namespace.protocol,
        max(1, namespace.concurrency),
        _Progress(len(plan.items)),
    )
    try:
        return await replay.run()
    finally:
        for each in senders.values():
            await each.close()


class _Progress:
    """Shows on a terminal, twice a second, how many requests are answered."""

    def __init__(self, total: int):
        self._total = total
        self._shown_s = time.monotonic()
        self._on = sys.stderr.isatty()

    def __call__(self, results: Results) -> None:
        if self._on and time.monotonic() - self._shown_s > 0.5:
            self._shown_s = time.monotonic()
            done = sum(results.counts.values())
            print(f"\r{done:,} of {self._total:,} requests\033[K\r", end="", file=sys.stderr)


def _speed(text: str) -> float:
    if text == "max":
        return math.inf
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        raise invalid(f"--speed={text}: expected a factor above 0, or max")
    return speed


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise invalid(f"--header '{text}': expected NAME: VALUE")
    return name.strip(), value.strip()
