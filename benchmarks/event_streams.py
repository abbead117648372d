"""Measure events of streams a second: python -m benchmarks.event_streams [--streams 64] [--rounds 5]

--route says what streams: chats of OpenAI, its Responses, or Anthropic's messages. The rivals have chats
only: for the others, core runs alone.

The engine is `letters`, which costs almost nothing, so the rest is the frontend: core with frontend-openai,
and a rival: a FastAPI application (benchmarks/servers/apps/events.py, on uvicorn with uvloop and httptools)
over the same engine, or with --rival vllm the frontend of `vllm serve` over an engine that costs less
(benchmarks/servers/apps/vllm_frontend.py). Both run on one core and are asked in turn: A B A B …. The first
round is not counted. CPU us: user and system time of the server, divided by the events. At the end, --open
streams are open at once at core, each with an event every 100 ms: the largest memory of the server.

Needs: pip install fastapi uvicorn uvloop httptools; for --rival vllm the environment of `make test-vllm`
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.generative import started

CONFIG = """
backend: "letters"
parameters {{ key: "context" value {{ string_value: "1000000" }} }}
parameters {{ key: "most" value {{ string_value: "4000" }} }}
parameters {{ key: "delay_ms" value {{ string_value: "{delay_ms}" }} }}
"""
# Module and arguments of each rival, and a path that answers once it serves.
RIVALS = {
    "fastapi": (
        [
            *("uvicorn", "benchmarks.servers.apps.events:app", "--port", "{port}"),
            *("--no-access-log", "--log-level", "warning", "--loop", "uvloop"),
            *("--http", "httptools"),
        ],
        "/docs",
    ),
    "vllm": (["benchmarks.servers.apps.vllm_frontend", "{port}"], "/health"),
}


class Route(NamedTuple):
    """A route that streams: its path, the fields of its body, and what its last event has near its begin."""

    path: str
    fields: Callable[[int], dict[str, object]]
    end: bytes


MESSAGES = [{"role": "user", "content": "hi"}]
ROUTES = {
    "chat": Route(
        "/v1/chat/completions",
        lambda tokens: {"messages": MESSAGES, "max_tokens": tokens},
        b"data: [DONE]",
    ),
    "messages": Route(
        "/v1/messages",
        lambda tokens: {"messages": MESSAGES, "max_tokens": tokens},
        b"event: message_stop",
    ),
    "responses": Route(
        "/v1/responses",
        lambda tokens: {"input": "hi", "max_output_tokens": tokens},
        b"event: response.incomplete",  # it has as many tokens as it may
    ),
}
EVENT = b"data: {"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Target(NamedTuple):
    """A running server: its port, the id of its process, and the name of its model."""

    name: str
    port: int
    process: int
    model: str

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def most_memory_mib(self) -> float:
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def stream(target: Target, route: Route, tokens: int) -> int:
    """Return the number of events of one stream; several tokens share an event while the client is behind."""
    document = {"model": target.model, "stream": True, **route.fields(tokens)}
    body = json.dumps(document).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=2**20)
    writer.write(
        b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (route.path.encode(), len(body)) + body
    )
    count, rest, ended = 0, b"", False
    while data := await reader.read(2**18):
        count += (rest[-len(EVENT) + 1 :] + data).count(EVENT)
        ended = ended or route.end in rest + data
        rest = data[-len(route.end) + 1 :]
    writer.close()
    if not ended:
        raise RuntimeError(
            f"{target.name}: a stream ended after {count} events for {tokens} tokens"
        )
    return count


async def streams_at_once(target: Target, route: Route, streams: int, tokens: int) -> int:
    return sum(await asyncio.gather(*[stream(target, route, tokens) for _ in range(streams)]))


class Round(NamedTuple):
    """Numbers of one round."""

    events_per_s: float
    cpu_us: float


def measure(target: Target, route: Route, streams: int, tokens: int) -> Round:
    """Return what one round shows: events for each second of CPU time, and its inverse in microseconds."""
    before = target.cpu_s()
    events = asyncio.run(streams_at_once(target, route, streams, tokens))
    spent = target.cpu_s() - before
    return Round(events / spent, spent / events * 1e6)


def compare(targets: list[Target], route: Route, streams: int, tokens: int, rounds: int) -> None:
    """Measure in turn, and print a line for each server."""
    found: dict[str, list[Round]] = {each.name: [] for each in targets}
    for number in range(rounds + 1):
        for target in targets:
            result = measure(target, route, streams, tokens)
            if number:
                found[target.name].append(result)
    for name, results in found.items():
        events = statistics.median(each.events_per_s for each in results)
        cpu = statistics.median(each.cpu_us for each in results)
        print(f"{name:8} {streams} streams   {events:9,.0f} events/s and core   CPU {cpu:6.2f} us")
    if len(found) == 2:
        ours, theirs = found.values()
        ratios = [a.events_per_s / b.events_per_s for a, b in zip(ours, theirs, strict=True)]
        print(f"ratio    {statistics.median(ratios):.2f}", flush=True)


@contextlib.contextmanager
def serving(arguments: argparse.Namespace, rival: str, delay_ms: int) -> Iterator[list[Target]]:
    """Run core and a rival of RIVALS, or core alone if that is "", until the block ends."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "m" / "1").mkdir(parents=True)
        (folder / "m" / "config.pbtxt").write_text(CONFIG.format(delay_ms=delay_ms))
        port, core = arguments.port, arguments.server_core
        command = [sys.executable, "-m", "core.serve", f"--model-repository={folder}"]
        command += [f"--http-port={port}", "--http-address=127.0.0.1", "--log-info=false"]
        command += ["--allow-grpc=false", "--allow-metrics=false"]
        commands = [("core", command, port, "/v2/health/ready")]
        if rival:
            words, ready = RIVALS[rival]
            command = [sys.executable, "-m", *(each.format(port=port + 1) for each in words)]
            commands.append((rival, command, port + 1, ready))
        yield [
            Target(each[0], each[2], stack.enter_context(started(*each, core)).process, "m")
            for each in commands
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--open", type=int, default=2000)
    parser.add_argument("--route", choices=tuple(ROUTES), default="chat")
    parser.add_argument("--rival", choices=tuple(RIVALS), default="fastapi")
    parser.add_argument("--port", type=int, default=20450)
    parser.add_argument("--server-core", default="0", help='core of the servers; "" for any')
    arguments = parser.parse_args()
    wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 2**16), wanted))
    route = ROUTES[arguments.route]
    rival = arguments.rival if arguments.route == "chat" else ""
    with serving(arguments, rival, 0) as targets:
        compare(targets, route, arguments.streams, arguments.tokens, arguments.rounds)
    with serving(arguments, "", 100) as (target,):
        asyncio.run(streams_at_once(target, route, arguments.open, 50))
        print(f"core     {arguments.open} open streams   {target.most_memory_mib():.0f} MiB")


if __name__ == "__main__":
    main()
