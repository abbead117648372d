"""Sequences: each request's response is the sum of its sequence so far.

A sequence over a stream has a separate stream: a stream answers in the order of its requests, so a sequence
that waits for a slot would block those with one.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import grpc.aio
import numpy as np

from soak import grpc_client
from soak.grpc_client import Refused, Stream
from soak.http_client import Closed
from soak.traffic import _EMPTY_FINAL, BEGIN_AGAIN, LONGEST_S, Clients

LENGTH = 6
PER_SECOND = 6.0  # sequences
WAYS = ("HTTP JSON", "gRPC", "stream")


async def sequence(clients: Clients) -> None:
    """One of them, from its first request to its last, or to the one that is refused."""
    way = clients.chosen.choice(WAYS)
    stream = Stream(clients.channel()) if way == "stream" else None
    try:
        await _sequence(clients, way, stream)
    finally:
        if stream is not None:
            await stream.close()
            clients.ledger.twice += stream.unknown


async def _sequence(clients: Clients, way: str, stream: Stream | None) -> None:
    ledger = clients.ledger
    begin = time.monotonic()
    sums = np.zeros(4, np.int32)
    key = 0
    for index in range(LENGTH):
        number = ledger.begin(f"sequence, {way}")
        key = key or number
        array = np.arange(number, number + 4, dtype=np.int32)
        sums = sums + array
        try:
            found = await asyncio.wait_for(
                _ask(clients, way, stream, number, key, index, array), LONGEST_S
            )
        except (Refused, Closed) as error:
            ledger.refuse(number, str(error), (BEGIN_AGAIN,), since=begin)
            return
        except asyncio.TimeoutError:
            ledger.bad(number, f"no answer in {LONGEST_S} s")
            return
        if found != sums.tolist():
            ledger.bad(number, f"request {index} of sequence {key}: {found}, not {sums.tolist()}")
            return
        ledger.right(number)


async def _ask(
    clients: Clients,
    way: str,
    stream: Stream | None,
    number: int,
    key: int,
    index: int,
    array: np.ndarray[Any, Any],
) -> list[int]:
    terms = {
        "sequence_id": key,
        "sequence_start": index == 0,
        "sequence_end": index == LENGTH - 1,
    }
    if way == "HTTP JSON":
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [4], "data": array.tolist()}
        body = json.dumps({"inputs": [tensor], "parameters": terms}).encode()
        status, text = await clients.http.ask("POST", "/v2/models/sums/infer", body)
        found = json.loads(text)
        if status != 200:
            raise Refused(found["error"])
        return list(found["outputs"][0]["data"])
    inputs = [("INPUT0", "INT32", array)]
    if stream is not None:
        request = grpc_client.message("sums", number, inputs, **terms, **_EMPTY_FINAL)
        (answer,) = await stream.ask(request)
        return grpc_client.numbers(answer)
    request = grpc_client.message("sums", number, inputs, **terms)
    try:
        found = await grpc_client.infer_of(clients.channel())(request, timeout=LONGEST_S)
    except grpc.aio.AioRpcError as error:
        raise Refused(grpc_client.reason(error)) from None
    return grpc_client.numbers(found)
