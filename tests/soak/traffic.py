"""What clients ask all the time, how often, and how their answers are checked."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import numpy as np

from soak import grpc_client
from soak.grpc_client import Refused, Stream
from soak.http_client import Closed, Pool
from soak.ledger import Ledger, Refusal, Truth

LONGEST_S = 60.0  # an answer that takes longer is lost
TURN_S = 0.01
_EMPTY_FINAL = {"triton_enable_empty_final_response": True}

UNLOADED = Refusal(
    "model is unloaded", r"Request for unknown model: 'passing' .*|.*'passing'.*unload.*", "unload"
)
LOADING = Refusal("model is loading", r"model 'passing' is loading for .*", "unload")
FULL = Refusal("queue is full", r"(\[.*\] )?Exceeds maximum queue size")
KILLED = Refusal("its process was killed", r".*Stub process 'plus_0_[01]' is not healthy\.")
BEGIN_AGAIN = Refusal(
    "sequence of a model that was replaced",
    r".*must specify the START flag on the first request.*",
    "sequences",
)


@dataclass
class Facts:
    """The right values of models that change."""

    version: Truth = field(default_factory=lambda: Truth(1))
    addend: Truth = field(default_factory=lambda: Truth(1))


@dataclass
class Answer:
    """Values of the output, and the version that computed them ("" if the response has none)."""

    values: list[int]
    version: str = ""


Right = Callable[[list[int], Answer, float, float], bool]
"""(sent values, answer, when it was sent, when it was answered) → whether that is right."""


def computes(function: Callable[[int], int]) -> Right:
    return lambda sent, answer, begin, end: answer.values == [function(each) for each in sent]


def by_version(facts: Facts) -> Right:
    """The version that the answer names was there, and it is its answer."""

    def right(sent: list[int], answer: Answer, begin: float, end: float) -> bool:
        number = int(answer.version)
        values = [each * number for each in sent]
        return answer.values == values and facts.version.holds(number, begin, end)

    return right


def by_addend(facts: Facts) -> Right:
    def right(sent: list[int], answer: Answer, begin: float, end: float) -> bool:
        added = answer.values[0] - sent[0]
        values = [each + added for each in sent]
        return answer.values == values and facts.addend.holds(added, begin, end)

    return right


@dataclass
class Clients:
    """Everything that the load is sent over."""

    http: Pool
    channels: list[grpc.aio.Channel]
    streams: list[Stream]
    ledger: Ledger
    facts: Facts
    chosen: random.Random
    number: int = 0

    def channel(self) -> grpc.aio.Channel:
        self.number += 1
        return self.channels[self.number % len(self.channels)]

    def stream(self) -> Stream:
        self.number += 1
        index = self.number % len(self.streams)
        if self.streams[index].broken:
            self.ledger.twice += self.streams[index].unknown
            self.streams[index] = Stream(self.channel())
        return self.streams[index]

    def values(self, number: int) -> list[int]:
        """Return the content of a request, different from all others."""
        return list(range(number * 16, number * 16 + self.chosen.randint(1, 16)))


Ask = Callable[[Clients, str, int, list[int]], Any]


async def http_json(clients: Clients, model: str, number: int, values: list[int]) -> Answer:
    tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [len(values)], "data": values}
    body = json.dumps({"id": str(number), "inputs": [tensor]}).encode()
    status, text = await clients.http.ask("POST", f"/v2/models/{model}/infer", body)
    found = json.loads(text)
    if status != 200:
        raise Refused(found["error"])
    if found["id"] != str(number):
        raise AssertionError(f"asked {number}, answered {found['id']}")
    return Answer(found["outputs"][0]["data"], found["model_version"])


async def http_binary(clients: Clients, model: str, number: int, values: list[int]) -> Answer:
    raw = np.array(values, np.int32).tobytes()
    tensor = {
        "name": "INPUT0", "datatype": "INT32", "shape": [len(values)],
        "parameters": {"binary_data_size": len(raw)},
    }  # fmt: skip
    wanted = {"id": str(number), "inputs": [tensor], "parameters": {"binary_data_output": True}}
    head = json.dumps(wanted).encode()
    status, body = await clients.http.ask(
        "POST",
        f"/v2/models/{model}/infer",
        head + raw,
        {"Inference-Header-Content-Length": str(len(head))},
    )
    if status != 200:
        raise Refused(json.loads(body)["error"])
    found, end = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    if found["id"] != str(number):
        raise AssertionError(f"asked {number}, answered {found['id']}")
    output = [int(each) for each in np.frombuffer(body[end:], np.int32)]
    return Answer(output, found["model_version"])


async def http_events(clients: Clients, model: str, number: int, values: list[int]) -> Answer:
    """generate_stream: an event for each answer."""
    body = json.dumps({"IN": values}).encode()
    status, text = await clients.http.ask("POST", f"/v2/models/{model}/generate_stream", body)
    events = [
        json.loads(part[6:]) for part in text.decode().split("\n\n") if part.startswith("data: ")
    ]
    if status != 200 or any("error" in each for each in events):
        raise Refused(json.loads(text)["error"] if status != 200 else events[-1]["error"])
    return Answer([each["OUT"] for each in events])


def _inputs(model: str, values: list[int]) -> list[tuple[str, str, np.ndarray[Any, Any]]]:
    array = np.array(values, np.int32)
    if model == "repeat":
        zeros = np.zeros(len(values), np.uint32)
        return [("IN", "INT32", array), ("DELAY", "UINT32", zeros), ("WAIT", "UINT32", zeros[:1])]
    return [("IN" if model == "words" else "INPUT0", "INT32", array)]


async def grpc_unary(clients: Clients, model: str, number: int, values: list[int]) -> Answer:
    infer = grpc_client.infer_of(clients.channel())
    try:
        answer = await infer(
            grpc_client.message(model, number, _inputs(model, values)), timeout=LONGEST_S
        )
    except grpc.aio.AioRpcError as error:
        raise Refused(grpc_client.reason(error)) from None
    if answer.id != str(number):
        raise AssertionError(f"asked {number}, answered {answer.id}")
    return Answer(grpc_client.numbers(answer), answer.model_version)


async def grpc_stream(clients: Clients, model: str, number: int, values: list[int]) -> Answer:
    """A request of a stream that many share; of decoupled models all answers together."""
    request = grpc_client.message(model, number, _inputs(model, values), **_EMPTY_FINAL)
    stream = clients.stream()
    try:
        answers = await asyncio.wait_for(stream.ask(request), LONGEST_S - 5)
    except asyncio.TimeoutError:
        raise AssertionError(f"no answer in {LONGEST_S} s; {stream.describe()}") from None
    return Answer(
        [each for answer in answers for each in grpc_client.numbers(answer)],
        answers[0].model_version if answers else "",
    )


@dataclass(frozen=True)
class Kind:
    """A kind of request, so often a second."""

    name: str
    per_second: float
    model: str
    ask: Ask
    right: Right
    allowed: tuple[Refusal, ...] = ()
    until_the_end: bool = False  # the end of the server is no excuse


def kinds(facts: Facts) -> list[Kind]:
    same, plus = computes(lambda x: x), computes(lambda x: x + 1)
    chain = computes(lambda x: 3 * x + 1)
    return [
        Kind("echo, HTTP JSON", 60, "echo", http_json, same),
        Kind("echo, HTTP binary", 80, "echo", http_binary, same),
        Kind("echo, gRPC", 40, "echo", grpc_unary, same),
        Kind("echo, stream", 20, "echo", grpc_stream, same),
        Kind("versions, HTTP JSON", 40, "scaled", http_json, by_version(facts)),
        Kind("versions, gRPC", 20, "scaled", grpc_unary, by_version(facts)),
        Kind("Python, killed, HTTP binary", 30, "plus", http_binary, plus, (KILLED,)),
        Kind("Python, killed, gRPC", 10, "plus", grpc_unary, plus, (KILLED,)),
        Kind("Python, instances change, HTTP JSON", 30, "counted", http_json, plus),
        Kind("ensemble, HTTP JSON", 30, "chain", http_json, chain),
        Kind("ensemble, gRPC", 10, "chain", grpc_unary, chain),
        Kind("overridden, HTTP binary", 30, "overridden", http_binary, by_addend(facts)),
        Kind(
            "unloaded and loaded, HTTP binary",
            30,
            "passing",
            http_binary,
            same,
            (UNLOADED, LOADING),
        ),
        Kind("unloaded and loaded, gRPC", 10, "passing", grpc_unary, same, (UNLOADED, LOADING)),
        Kind("queue of eight, HTTP JSON", 15, "crowded", http_rows, same, (FULL,)),
        Kind("decoupled, native, stream", 15, "repeat", grpc_stream, same),
        Kind("decoupled, Python, stream", 10, "words", grpc_stream, same),
        Kind("decoupled, Python, events", 10, "words", http_events, same),
    ]


async def http_rows(clients: Clients, model: str, number: int, values: list[int]) -> Answer:
    """As http_json, for a model with a batch dimension."""
    tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [1, 16], "data": _padded(values)}
    body = json.dumps({"id": str(number), "inputs": [tensor]}).encode()
    status, text = await clients.http.ask("POST", f"/v2/models/{model}/infer", body)
    found = json.loads(text)
    if status != 200:
        raise Refused(found["error"])
    return Answer(found["outputs"][0]["data"][: len(values)], found["model_version"])


def _padded(values: Iterable[int]) -> list[int]:
    return [*values, *range(16)][:16]


async def one(clients: Clients, kind: Kind) -> None:
    """A request from its beginning to its line in the ledger."""
    ledger = clients.ledger
    number = ledger.begin(kind.name)
    begin = ledger.begun_at(number)
    values = clients.values(number)
    try:
        answer = await asyncio.wait_for(kind.ask(clients, kind.model, number, values), LONGEST_S)
    except (Refused, Closed) as error:
        ledger.refuse(number, str(error), kind.allowed, not kind.until_the_end)
    except asyncio.TimeoutError:
        ledger.bad(number, f"no answer in {LONGEST_S} s")
    except Exception as error:
        ledger.bad(number, f"{type(error).__name__}: {error}")
    else:
        end = time.monotonic()
        if kind.right(values, answer, begin, end):
            ledger.right(number)
        else:
            ledger.bad(number, f"sent {values}, answered {answer}")
