"""Requests of clients over HTTP and gRPC, at a steady rate, and the check of each answer."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Coroutine
from typing import Any

import grpc
import grpc.aio
import numpy as np
from soak import grpc_client
from soak.grpc_client import Refused, Stream
from soak.http_client import Closed, Pool
from soak.ledger import Ledger, Refusal

from router_soak.fleet import Router

LONGEST_S = 60.0  # an answer that takes longer is lost
TURN_S = 0.01
CHANNELS, STREAMS = 4, 4
LENGTH = 6  # of a sequence
SEQUENCES = 0.2  # of the requests that belong to sequences
MOST_IN_FLIGHT = (
    300  # a machine that is too slow for the rate gets less, so that answers come in time
)

# The state of a sequence ends with its server. The client hears that, and begins again.
ENDED = Refusal(
    "server of the sequence ended",
    r".*(begin the sequence again|was lost|stream was lost|START flag|Server exiting|shutting down"
    r"|no server takes|closed: ).*",
    "server ends",
)
WAYS = ("HTTP", "gRPC", "stream")


class Load:
    """Clients of one router. Loop thread.

    begun_again   sequences that began again after the end of their server
    """

    def __init__(self, router: Router, ledger: Ledger, rate: float, seed: int) -> None:
        self.ledger = ledger
        self.begun_again = 0
        self._rate = rate
        self._chosen = random.Random(seed)
        self._http = Pool(router.ports.http)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        self._channels = [
            grpc.aio.insecure_channel(f"127.0.0.1:{router.ports.grpc}", options=options)
            for _ in range(CHANNELS)
        ]
        self._streams = [Stream(self._channel()) for _ in range(STREAMS)]
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_offering = True

    async def offer(self) -> None:
        """Begin so many requests a second, whether or not they are answered, until `settle`."""
        last, due, due_sequences = time.monotonic(), 0.0, 0.0
        while self._is_offering:
            await asyncio.sleep(TURN_S)
            now = time.monotonic()
            if self.ledger.in_flight < MOST_IN_FLIGHT:
                due += (now - last) * self._rate * (1 - SEQUENCES)
                due_sequences += (now - last) * self._rate * SEQUENCES / LENGTH
            last = now
            while due >= 1:
                due -= 1
                self._do(
                    self._one(self._chosen.choice(WAYS), self._chosen.choice(("echo", "plus")))
                )
            while due_sequences >= 1:
                due_sequences -= 1
                self._do(self._sequence(self._chosen.choice(WAYS)))

    async def settle(self) -> None:
        """Begin no more requests, and wait for the answers of all."""
        self._is_offering = False
        end_s = time.monotonic() + LONGEST_S + 10
        while self._tasks and time.monotonic() < end_s:
            await asyncio.sleep(0.05)
        for task in self._tasks:
            task.cancel()

    async def close(self) -> list[str]:
        """End all connections. Return what came without a request."""
        stray = [text for each in self._streams for text in each.unknown]
        for stream in self._streams:
            await stream.close()
        for channel in self._channels:
            await channel.close()
        self._http.close()
        return stray + [repr(each) for each in self._http.stray]

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(self._safely(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _safely(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.ledger.wrong.append(f"the soak itself: {type(error).__name__}: {error}")

    def _channel(self) -> grpc.aio.Channel:
        return self._chosen.choice(self._channels)

    # requests -------------------------------------------------------------

    async def _one(self, way: str, model: str) -> None:
        number = self.ledger.begin(f"{model}, {way}")
        array = np.arange(number, number + 4, dtype=np.int32)
        expected = (array + (model == "plus")).tolist()
        stream = self._chosen.choice(self._streams)
        try:
            found = await asyncio.wait_for(self._ask(way, stream, model, number, array), LONGEST_S)
        except (Refused, Closed) as error:
            self.ledger.refuse(number, str(error), (), ending=False)
        except asyncio.TimeoutError:
            self.ledger.bad(number, f"no answer in {LONGEST_S} s")
        else:
            if found == expected:
                self.ledger.right(number)
            else:
                self.ledger.bad(number, f"{found}, not {expected}")

    async def _sequence(self, way: str) -> None:
        """Send a sequence; begin it again, from its first request, if its server ends."""
        while not await self._sequence_once(way):
            self.begun_again += 1
            await asyncio.sleep(0.1)

    async def _sequence_once(self, way: str) -> bool:
        """Return False if the server of the sequence has ended."""
        stream = Stream(self._channel()) if way == "stream" else None
        try:
            return await self._steps(way, stream)
        finally:
            if stream is not None:
                await stream.close()

    async def _steps(self, way: str, stream: Stream | None) -> bool:
        ledger, begin_s, key = self.ledger, time.monotonic(), 0
        sums = np.zeros(4, np.int32)
        for index in range(LENGTH):
            number = ledger.begin(f"sequence, {way}")
            key = key or number
            array = np.arange(number, number + 4, dtype=np.int32)
            sums = sums + array
            terms = {
                "sequence_id": key,
                "sequence_start": index == 0,
                "sequence_end": index == LENGTH - 1,
            }
            asking = self._ask(way, stream, "sums", number, array, **terms)
            try:
                found = await asyncio.wait_for(asking, LONGEST_S)
            except (Refused, Closed) as error:
                ledger.refuse(number, str(error), (ENDED,), ending=False, since=begin_s)
                return False
            except asyncio.TimeoutError:
                ledger.bad(number, f"no answer in {LONGEST_S} s")
                return True
            if found != sums.tolist():
                ledger.bad(number, f"request {index} of a sequence: {found}, not {sums.tolist()}")
                return True
            ledger.right(number)
            await asyncio.sleep(0.05)
        return True

    async def _ask(
        self,
        way: str,
        stream: Stream | None,
        model: str,
        number: int,
        array: np.ndarray[Any, Any],
        **terms: Any,
    ) -> list[int]:
        """Return the values of the answer. Raises Refused or Closed."""
        if way == "HTTP":
            return await self._ask_http(model, array, terms)
        inputs = [("INPUT0", "INT32", array)]
        if way == "stream" and stream is not None:
            final = {"triton_enable_empty_final_response": True}
            (answer,) = await stream.ask(
                grpc_client.message(model, number, inputs, **terms, **final)
            )
            return grpc_client.numbers(answer)
        request = grpc_client.message(model, number, inputs, **terms)
        try:
            return grpc_client.numbers(
                await grpc_client.infer_of(self._channel())(request, timeout=LONGEST_S)
            )
        except grpc.aio.AioRpcError as error:
            raise Refused(grpc_client.reason(error)) from None

    async def _ask_http(
        self, model: str, array: np.ndarray[Any, Any], terms: dict[str, Any]
    ) -> list[int]:
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [4], "data": array.tolist()}
        body = json.dumps({"inputs": [tensor], "parameters": terms}).encode()
        status, text = await self._http.ask("POST", f"/v2/models/{model}/infer", body)
        found = json.loads(text)
        if status != 200:
            raise Refused(str(found["error"]))
        return list(found["outputs"][0]["data"])
