"""A campaign: hostile requests over one protocol, with good ones between them, and what was found."""

import collections
import os
import pathlib
import random
import time
from dataclasses import dataclass, field
from importlib.util import find_spec

from . import grpc_messages, http_messages
from .clients import GOOD_GRPC, GOOD_HTTP, GrpcClient, HttpClient, good_over_grpc, good_over_http

GOOD_EVERY = 50
WARM_SHARE = 0.1  # of the requests, before memory is looked at for the first time
MOST_GROWTH = 16 * 2**20  # bytes; allocators keep some of the memory that they once needed

# Statuses of a server without a fault. 500 and INTERNAL are for models that fail.
_STATUSES = {"gone", *range(200, 500), 501, 503, 504}
_CODES = {
    *("OK", "INVALID_ARGUMENT", "NOT_FOUND", "UNAVAILABLE", "UNIMPLEMENTED", "ALREADY_EXISTS"),
    *("RESOURCE_EXHAUSTED", "CANCELLED", "DEADLINE_EXCEEDED", "gone"),
}
# Triton answers these faults of a client with 500 and INTERNAL, and so does this server.
_TRITONS_WORDS = (b"Unable to open shared memory region", b"failed to load", b"failed to unload")
_BEGINS_AGAIN = ("UNAVAILABLE", "CANCELLED")
_OWN_FAULT = (b"unexpected error in the server", b"; see the log", b"its log says why")


@dataclass
class Findings:
    """The results of a campaign.

    outcomes   (kind, status) → count
    bad        texts of some findings
    count      number of sent requests, with good ones
    growth     growth of the server's memory in bytes, after the campaign's beginning
    """

    name: str
    outcomes: collections.Counter = field(default_factory=collections.Counter)
    bad: list[str] = field(default_factory=list)
    count: int = 0
    good: int = 0
    growth: int = 0
    seconds: float = 0.0

    def add(self, kind, message, outcome, is_bad):
        self.count += 1
        self.outcomes[kind, outcome.status] += 1
        is_bad = is_bad and not any(words in outcome.text for words in _TRITONS_WORDS)
        if is_bad or any(text in outcome.text for text in _OWN_FAULT):
            self.blame(f"{kind}: {outcome.status} {outcome.text[:300]!r} for {message[:600]!r}")

    def blame(self, text):
        if len(self.bad) < 20:
            self.bad.append(text)


def over_http(server, count, seed, name="http"):
    """Send `count` requests over HTTP, on one connection and, for invalid HTTP, on others."""
    chance, client, findings = random.Random(seed), HttpClient(server.http_port), Findings(name)
    kinds, weights = list(http_messages.KINDS), list(http_messages.WEIGHTS.values())

    def one():
        if chance.random() < http_messages.UNFRAMED_SHARE:
            message = http_messages.unframed(chance)
            outcome = client.throw(message)
            findings.add("no http", message, outcome, outcome.status not in _STATUSES)
            return
        (kind,) = chance.choices(kinds, weights)
        message = http_messages.KINDS[kind](chance)
        outcome = client.ask(message)
        to_blame = outcome.status not in _STATUSES and not _by_the_model(message)
        findings.add(kind, message, outcome, to_blame)

    def good():
        outcome = client.ask(GOOD_HTTP)
        findings.add("good", GOOD_HTTP, outcome, not good_over_http(outcome))

    _run(server, findings, count, one, good)
    client.close()
    return findings


def begins_again(engine):
    """Whether the library behind an engine gives up at some bytes, and begins again: grpcio does.

    engine   as --grpc-engine has it; auto is grpcio where nghttp2 was not there when core was built
    """
    return engine == "grpcio" or find_spec("frontends.grpc.native.connection") is None


def over_grpc(server, count, seed, name="grpc", restarts=False):
    """Send `count` requests over gRPC.

    restarts   result of `begins_again`: a good request may need a second attempt
    """
    chance, client, findings = random.Random(seed), GrpcClient(server.grpc_port), Findings(name)
    sent = []  # of the calls that have no outcome yet

    def settle(all_of_them=False):
        outcomes = client.answers(all_of_them)
        for (kind, data), outcome in zip(sent[: len(outcomes)], outcomes, strict=True):
            if kind == "good" and outcome.status in _BEGINS_AGAIN and restarts:
                findings.outcomes["good once more", outcome.status] += 1
                outcome = client.persist(grpc_messages.INFER, data)
            right = good_over_grpc(outcome) if kind == "good" else outcome.status in _CODES
            findings.add(kind, data, outcome, not right and b"faulty" not in data)
        del sent[: len(outcomes)]

    def one():
        draw = chance.random()
        if draw < grpc_messages.UNFRAMED_SHARE:
            data = grpc_messages.connection(chance)
            findings.add("frames", data, client.throw(data), False)
        elif draw < grpc_messages.UNFRAMED_SHARE + grpc_messages.STREAM_SHARE:
            messages = grpc_messages.stream(chance)
            outcome = client.stream(messages)
            findings.add("stream", b"|".join(messages), outcome, outcome.status not in _CODES)
        else:
            method, data = grpc_messages.call(chance)
            kind = "infer" if method == grpc_messages.INFER else "other"
            sent.append((kind, data))
            client.begin(method, data)
            settle()

    def good():
        sent.append(("good", GOOD_GRPC))
        client.begin(grpc_messages.INFER, GOOD_GRPC)
        settle()

    _run(server, findings, count, one, good, lambda: settle(True))
    client.close()
    return findings


def _run(server, findings, count, one, good, settle=lambda: None):
    before, began = None, time.monotonic()
    try:
        for number in range(count):
            if number % GOOD_EVERY == 0:
                findings.good += 1
                good()
            else:
                one()
            if before is None and number >= count * WARM_SHARE:
                settle()
                before = memory(server)
        settle()
        good()
        settle()
        findings.growth = memory(server) - before
    except (TimeoutError, OSError) as error:
        findings.blame(f"no answer in time: {error!r}")
    findings.seconds = time.monotonic() - began
    if server.process.poll() is not None:
        findings.blame(f"the server has ended with {server.process.returncode}")
    if findings.growth > MOST_GROWTH:
        findings.blame(f"the server has kept {findings.growth / 2**20:.1f} MiB")


def _by_the_model(message):
    """Whether it is a model that may have failed."""
    return b"/faulty/" in message[:300]


def memory(server):
    """Bytes that the server's own process holds."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def table(all_findings):
    """One table of all that was seen."""
    lines = [
        "| campaign | requests | good, all right | outcomes | memory kept | seconds | findings |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for each in all_findings:
        by_status = collections.Counter()
        for (kind, status), number in each.outcomes.items():
            if not kind.startswith("good"):
                by_status[str(status)] += number
        seen = ", ".join(f"{number} {status}" for status, number in by_status.most_common())
        lines.append(
            f"| {each.name} | {each.count} | {each.good} | {seen} | {each.growth / 2**20:.1f} MiB | "
            f"{each.seconds:.0f} | {len(each.bad) or 'none'} |"
        )
    return os.linesep.join(lines)
