"""Streams under disturbance: python -m tests.streams.soak [--seconds 600] [--streams 48]

A server with two models of the engine `letters`, which generates a known text. Clients stream chats,
completions and generate_stream, some of them slowly; some leave, some are killed. Meanwhile one model is
loaded again every few seconds, and the other is unloaded and loaded. Every stream must end rightly: with its
whole text, or with an error that names an unload; no stream may be cut, and no text may differ. At the end,
no generation runs, the memory of the last third is that of the middle third, and the server ends with status
0.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from tests.soak.server import Server
from tests.streams.client import EventClient

CONFIG = """
backend: "letters"
parameters { key: "delay_ms" value { string_value: "3" } }
parameters { key: "most" value { string_value: "64" } }
"""
LETTERS = "abcdefghijklmnopqrstuvwxyz "
STEADY, CHANGING = "steady", "changing"
UNLOADED = (
    "unload",
    "not ready",
    "no available versions",
    "does not exist",
    "is loading",
)  # in errors
MOST_GROWTH_MIB = 8.0


class Trial:
    """The clients of one soak, and what they have seen.

    seen       number of streams by their end
    problems   one text for each thing that must not happen
    """

    def __init__(self, server: Server, seconds: float, seed: int):
        self.seen: Counter[str] = Counter()
        self.problems: list[str] = []
        self.memory: list[tuple[float, float]] = []  # (seconds since the start, MiB)
        self._server = server
        self._begin = time.monotonic()
        self._end = self._begin + seconds
        self._random = random.Random(seed)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._end

    async def run(self, streams: int) -> None:
        """Run until the end, with `streams` clients at a time."""
        tasks = [self._client() for _ in range(streams)]
        await asyncio.gather(*tasks, self._reloads(), self._measurements())

    async def _client(self) -> None:
        while not self.over:
            try:
                self.seen[await asyncio.wait_for(self._stream(), 60)] += 1
            except (OSError, ValueError, asyncio.TimeoutError) as error:
                self.problems.append(f"a stream was cut: {type(error).__name__}: {error}")
                await asyncio.sleep(0.1)

    async def _stream(self) -> str:
        """Run one stream; return how it has ended."""
        draw = self._random
        model = CHANGING if draw.random() < 0.3 else STEADY
        tokens, habit = draw.randint(5, 150), draw.choice(["read", "read", "slow", "leave", "kill"])
        route = draw.choice(["chat", "completion", "generate"])
        client = EventClient(self._server.ports.http, 512 if habit == "slow" else 2**16)
        status = await client.open(*_request(route, model, tokens))
        if status != 200:
            text = (await client.body()).decode()
            client.close()
            return self._refused(model, status, text)
        text, count = "", 0
        leaves_at = draw.randint(1, tokens)
        async for event in client.events():
            if event == "[DONE]":
                break
            document = json.loads(event)
            if "error" in document:
                client.close()
                return self._refused(model, 0, event)
            text += _text(route, document)
            count += 1
            if count == leaves_at and habit in ("leave", "kill"):
                client.close() if habit == "leave" else client.kill()
                return habit
            if habit == "slow":
                await asyncio.sleep(0.005)
        client.close()
        if text != _expected(route, tokens):
            self.problems.append(f"{route} of {tokens} tokens gave {len(text)}: {text[:60]!r}")
        return f"{route} whole"

    def _refused(self, model: str, status: int, text: str) -> str:
        if model == STEADY or not any(each in text for each in UNLOADED):
            self.problems.append(f"model {model}: status {status}: {text[:200]}")
        return "refused by an unload"

    async def _reloads(self) -> None:
        while not self.over:
            await asyncio.sleep(2)
            await asyncio.to_thread(self._control, STEADY, "load")
            await asyncio.to_thread(self._control, CHANGING, "unload")
            await asyncio.sleep(1)
            await asyncio.to_thread(self._control, CHANGING, "load")
        await asyncio.to_thread(self._control, CHANGING, "load")

    def _control(self, model: str, verb: str) -> None:
        url = f"http://127.0.0.1:{self._server.ports.http}/v2/repository/models/{model}/{verb}"
        # A new configuration makes a new version of the model; the same one would change nothing.
        settings = {"backend": "letters", "parameters": {"delay_ms": {"string_value": "3"}}}
        settings["parameters"] |= {"context": {"string_value": str(4096 + self.seen.total() % 7)}}
        body = json.dumps(
            {"parameters": {"config": json.dumps(settings)}} if verb == "load" else {}
        )
        try:
            urllib.request.urlopen(url, body.encode(), timeout=60).close()
            self.seen[f"{verb} of {model}"] += 1
        except OSError as error:
            self.problems.append(f"{verb} of {model}: {error}")

    async def _measurements(self) -> None:
        while not self.over:
            await asyncio.sleep(1)
            self.memory.append((time.monotonic() - self._begin, self._server.resident_mib()))

    def growth_mib(self) -> float:
        """Return the median memory of the last third minus that of the middle third."""
        seconds = self.memory[-1][0]
        middle = [mib for at, mib in self.memory if seconds / 3 <= at < 2 * seconds / 3]
        last = [mib for at, mib in self.memory if at >= 2 * seconds / 3]
        return statistics.median(last) - statistics.median(middle)


def _request(route: str, model: str, tokens: int) -> tuple[str, dict[str, Any]]:
    if route == "generate":
        sampling = json.dumps({"max_tokens": tokens, "temperature": 0})
        document = {"text_input": "z ", "stream": True, "sampling_parameters": sampling}
        return f"/v2/models/{model}/generate_stream", document
    common = {"model": model, "max_tokens": tokens, "temperature": 0, "stream": True}
    if route == "chat":
        return "/v1/chat/completions", {**common, "messages": [{"role": "user", "content": "z "}]}
    return "/v1/completions", {**common, "prompt": "z "}


def _text(route: str, document: dict[str, Any]) -> str:
    if route == "generate":
        return str(document["text_output"])
    (choice,) = document["choices"]
    found = choice["delta"].get("content") if route == "chat" else choice["text"]
    return found or ""


def _expected(route: str, tokens: int) -> str:
    """Return the text of a whole generation: letters that continue the last one of the prompt."""
    first = (
        LETTERS.index("u") if route == "chat" else 0
    )  # the template of chats ends with "assistant|>"
    return (LETTERS * (tokens // len(LETTERS) + 2))[first : first + tokens]


def soak(folder: Path, seconds: float, streams: int, seed: int) -> Trial:
    """Run a soak in an empty folder; `problems` of the result says what was wrong."""
    for model in (STEADY, CHANGING):
        (folder / "models" / model / "1").mkdir(parents=True)
        (folder / "models" / model / "config.pbtxt").write_text(CONFIG)
    server = Server(folder, "--model-control-mode=explicit", "--load-model=*")
    try:
        _wait_ready(server)
        trial = Trial(server, seconds, seed)
        asyncio.run(trial.run(streams))
        time.sleep(1)
        if running := _running(server):
            trial.problems.append(f"{running:.0f} generations run after the last client has left")
        growth = trial.growth_mib()
        if growth > MOST_GROWTH_MIB:
            trial.problems.append(f"the memory has grown by {growth:.1f} MiB in the last third")
        server.signal()
        if status := server.process.wait(60):
            trial.problems.append(f"the server ended with status {status}: {server.last_words()}")
        return trial
    finally:
        server.kill()


def _wait_ready(server: Server) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.alive():
        try:
            urllib.request.urlopen(
                f"http://127.0.0.1:{server.ports.http}/v2/health/ready", timeout=5
            ).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the server is not ready: {server.last_words()}")


def _running(server: Server) -> float:
    url = f"http://127.0.0.1:{server.ports.metrics}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    names = ("core_generation_running{", "core_generation_waiting{")
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(names))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--streams", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = soak(Path(folder), arguments.seconds, arguments.streams, arguments.seed)
    for name, count in sorted(trial.seen.items()):
        print(f"{count:9,} {name}")
    print(
        f"memory {trial.memory[0][1]:.1f} MiB at the start, {trial.memory[-1][1]:.1f} at the end, ",
        end="",
    )
    print(f"growth in the last third {trial.growth_mib():+.1f} MiB")
    for count, text in enumerate(trial.problems):
        if count < 20:
            print(f"problem: {text}")
    print(f"{len(trial.problems)} problems")
    sys.exit(bool(trial.problems))


if __name__ == "__main__":
    main()
