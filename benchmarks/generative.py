"""Measure tokens a second: python -m benchmarks.generative MODEL.gguf [--streams 1 4] [--rounds 5]

The same model, prompts and sampling, streamed as events over HTTP by two servers: core with backend-llamacpp
(generate_stream), and xllamacpp's own HTTP server (/v1/completions). Both run on the server's core, and are
asked in turn: A B A B …, each round with prompts of its own, for which no server has a cache. The first round
is not counted. For each number of streams: tokens a second, the mean time to the first token of all streams,
and core divided by the other in each round, then the median. A mean, because the first tokens of prompts that
are computed together come together: a median would say only which prompts the engine has taken first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CONFIG = """
backend: "llamacpp"
parameters {{ key: "context" value {{ string_value: "512" }} }}
parameters {{ key: "slots" value {{ string_value: "{slots}" }} }}
parameters {{ key: "threads" value {{ string_value: "1" }} }}
"""
BATCH = """
parameters {{ key: "batch" value {{ string_value: "{batch}" }} }}
"""
OTHER = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.hostnames, params.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
params.n_parallel, params.verbosity, params.warmup, params.ui = int(sys.argv[3]), 1, False, False
params.n_ctx, params.n_batch, params.n_ubatch, params.cache_ram_mib = 512 * params.n_parallel, 512, 512, 256
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
threading.Event().wait()
"""
START_S = 600  # the frontend of vLLM imports PyTorch
STREAM_S = 300


class Server(NamedTuple):
    """A running server, and the id of its process."""

    name: str
    port: int
    process: int

    def request(self, number: int, tokens: int) -> tuple[str, dict[str, object]]:
        """Return path and body of the request of a stream."""
        prompt = f"Story {number}: Once upon a time, in the year {1000 + number},"
        sampling = {"max_tokens": tokens, "temperature": 0, "ignore_eos": True}
        if self.name == "core":
            body = {
                "text_input": prompt,
                "stream": True,
                "sampling_parameters": json.dumps(sampling),
            }
            return "/v2/models/m/generate_stream", body
        return "/v1/completions", {"prompt": prompt, "stream": True, **sampling}


class Round(NamedTuple):
    """What one round of one server has shown."""

    tokens_per_s: float
    first_token_ms: float


async def connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to a server."""
    return await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)


async def stream(
    server: Server,
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    number: int,
    tokens: int,
) -> tuple[float, int]:
    """Return the seconds from the request to the first event, and the number of events."""
    path, document = server.request(number, tokens)
    body = json.dumps(document).encode()
    begin, first, events, rest = time.perf_counter(), 0.0, 0, b""
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
            first = time.perf_counter() - begin
        events += found
    writer.close()
    return first, events


async def measure(server: Server, streams: int, tokens: int, first: int) -> Round:
    """Return what some streams at once show; their prompts have the numbers from `first`.

    Raises RuntimeError for a stream that lacks tokens.
    """
    connections = [await connect(server) for _ in range(streams)]  # clients keep them open
    begin = time.perf_counter()
    tasks = [stream(server, each, first + k, tokens) for k, each in enumerate(connections)]
    found = await asyncio.wait_for(asyncio.gather(*tasks), STREAM_S)
    seconds = time.perf_counter() - begin
    if few := [events for _, events in found if events < tokens * 0.9]:
        raise RuntimeError(f"{server.name}: a stream had {few[0]} events for {tokens} tokens")
    first_s = statistics.mean(each for each, _ in found)
    return Round(streams * tokens / seconds, first_s * 1000)


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batch", type=int, help="parameter 'batch' of core's model")
    parser.add_argument("--port", type=int, default=20400)
    parser.add_argument("--server-core", default="0", help='core of both servers; "" for any')
    arguments = parser.parse_args()
    slots, port = max(arguments.streams), arguments.port
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "m" / "1").mkdir(parents=True)
        (folder / "m" / "1" / "model.gguf").symlink_to(arguments.model.resolve())
        config = CONFIG.format(slots=slots)
        if arguments.batch:
            config += BATCH.format(batch=arguments.batch)
        (folder / "m" / "config.pbtxt").write_text(config)
        core = [sys.executable, "-m", "core.serve", f"--model-repository={folder}"]
        core += [f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
        core += ["--http-address=127.0.0.1"]
        other = [sys.executable, "-c", OTHER, str(arguments.model), str(port + 1), str(slots)]
        servers = [
            stack.enter_context(
                started("core", core, port, "/v2/health/ready", arguments.server_core)
            ),
            stack.enter_context(
                started("llama", other, port + 1, "/health", arguments.server_core)
            ),
        ]
        for streams in arguments.streams:
            compare(servers, streams, arguments.rounds, arguments.tokens)


def compare(servers: list[Server], streams: int, rounds: int, tokens: int) -> None:
    """Measure some rounds, and print a line."""
    found: dict[str, list[Round]] = {server.name: [] for server in servers}
    for number in range(rounds + 1):
        for server in servers:
            result = asyncio.run(measure(server, streams, tokens, number * streams))
            if number:
                found[server.name].append(result)
    ours, theirs = found.values()
    ratio = statistics.median(
        a.tokens_per_s / b.tokens_per_s for a, b in zip(ours, theirs, strict=True)
    )
    later = statistics.median(
        a.first_token_ms - b.first_token_ms for a, b in zip(ours, theirs, strict=True)
    )
    shown = "   ".join(
        f"{name} {statistics.median(each.tokens_per_s for each in results):7.1f} tokens/s, first "
        f"{statistics.median(each.first_token_ms for each in results):7.1f} ms"
        for name, results in found.items()
    )
    print(f"{streams:3} streams   {shown}   ratio {ratio:.3f}   first {later:+.1f} ms", flush=True)


if __name__ == "__main__":
    main()
