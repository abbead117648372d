"""FrontendConformance: what every frontend does, asked over its own transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from core import dtypes
from core.errors import CoreError, Kind
from core.testing.example import Arrays, Example
from core.testing.frontends.client import CAPABILITIES, FrontendClient
from core.testing.frontends.stage import (
    DATATYPES,
    FLOOD,
    OF_EACH_DATATYPE,
    PATIENCE_S,
    Stage,
    stage,
)

X = np.array([1.5, -2.0, 3.25], np.float32)
COUNT = {"x": np.array([3], np.int32)}

Body = Callable[[Stage, FrontendClient], Awaitable[None]]


class FrontendConformance:
    """The contract. Subclass it in a test module; its tests need no plugin of pytest.

    frontend    the class under test, as its entry point names it; with an attribute `port` once it listens
    client      the class that speaks to it
    name        of the frontend: the options <name>_address and <name>_port are its address
    options     of the server for all tests; those of no flag are in options.added
    supports    words of CAPABILITIES
    datatypes   those that the transport can carry
    patience_s  what takes longer counts as lost
    """

    frontend: ClassVar[type[Any]]
    client: ClassVar[type[FrontendClient]]
    name: ClassVar[str] = "http"
    options: ClassVar[dict[str, Any]] = {}
    supports: ClassVar[set[str]] = set(CAPABILITIES)
    datatypes: ClassVar[list[str]] = DATATYPES
    patience_s: ClassVar[float] = PATIENCE_S

    def needs(self, *capabilities: str) -> None:
        """Skip the test unless the frontend supports all of these."""
        for each in capabilities:
            if each not in self.supports:
                pytest.skip(f"supports has no '{each}': {CAPABILITIES[each]}")

    @pytest.fixture(autouse=True)
    def _known(self, tmp_path: Path) -> None:
        if unknown := self.supports - CAPABILITIES.keys():
            pytest.fail(f"no such capability: {sorted(unknown)}; there are {sorted(CAPABILITIES)}")
        self._folder = tmp_path

    def play(self, body: Body, *, load: bool = True, more: Mapping[str, str] | None = None) -> None:
        """Run a test on a stage with one client; load, more: as `stage` has them."""

        async def act() -> None:
            async with stage(
                self._folder,
                self.frontend,
                self.client,
                self.name,
                self.options,
                load=load,
                more=more,
            ) as found:
                await asyncio.wait_for(body(found, await found.connect()), self.patience_s)

        asyncio.run(act())

    # starts, health, metadata ---------------------------------------------------------

    def test_it_listens_from_start_to_stop(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            assert await client.live()
            await client.close()
            await stage.frontend.stop(1.0)

            with pytest.raises(Exception):  # noqa: B017 - each transport has its own
                late = await stage.connect()
                await late.live()

        self.play(body)

    def test_it_may_be_stopped_twice(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            await client.close()
            await stage.frontend.stop(1.0)
            await stage.frontend.stop(1.0)

        self.play(body)

    def test_a_port_that_is_taken_is_an_error_that_names_it(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            port = stage.frontend.port
            _set_port(stage, self.name, port)
            other = self.frontend(stage.server)

            with pytest.raises(CoreError) as caught:
                await other.start()

            await other.stop(1.0)
            assert caught.value.kind is Kind.UNAVAILABLE
            assert str(port) in caught.value.message
            assert await client.live()

        self.play(body)

    def test_it_tells_whether_server_and_models_are_ready(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            assert await client.live()
            assert await client.ready()
            assert await client.model_ready("echo")
            assert not await _false_or_refused(client.model_ready("no_such_model"))

        self.play(body)

    def test_it_listens_before_the_models_are_loaded_and_is_not_ready(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            assert not await _false_or_refused(client.ready())

            await stage.server.start()

            assert await client.ready()

        self.play(body, load=False)

    def test_it_is_not_ready_while_the_server_ends(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            await stage.server.stop(PATIENCE_S)

            assert not await _false_or_refused(client.ready())

        self.play(body)

    def test_it_describes_the_server(self) -> None:
        self.needs("metadata")

        async def body(stage: Stage, client: FrontendClient) -> None:
            found = await client.metadata()

            assert found["name"] == stage.server.name
            assert found["version"] == stage.server.version

        self.play(body)

    def test_it_describes_a_model(self) -> None:
        self.needs("metadata")

        async def body(stage: Stage, client: FrontendClient) -> None:
            found = await client.model_metadata("rows")

            assert found["name"] == "rows"
            tensors = [
                (t["name"], t["datatype"], [int(d) for d in t["shape"]]) for t in found["inputs"]
            ]
            assert tensors == [("x", "FP32", [-1, 2])]
            assert [t["name"] for t in found["outputs"]] == ["y", "z"]

        self.play(body)

    # infer ----------------------------------------------------------------------------

    def test_a_request_gets_its_answer(self) -> None:
        self._echoes("echo", X)

    def test_every_datatype_comes_through(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            for name in self.datatypes:
                array = np.array([0, 1, 1], dtypes.BY_NAME[name].numpy)
                await self._echo(client, f"of_{name.lower()}", array)

        self.play(body, more=OF_EACH_DATATYPE)

    def test_text_comes_through_as_it_is(self) -> None:
        self._echoes("words", np.array([b"", "ä€𝄞".encode(), b'"\\ \n'], object))

    def test_an_empty_tensor_comes_through(self) -> None:
        self._echoes("echo", np.zeros(0, np.float32))

    def test_a_large_tensor_comes_through(self) -> None:
        self._echoes("echo", np.arange(200_000, dtype=np.float32))

    def test_only_the_wanted_output_comes_back(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            found = await client.infer("echo", {"x": X}, outputs=("z",))

            assert list(found) == ["z"]

        self.play(body)

    def test_many_requests_at_once_get_their_own_answers(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            others = [client, *[await stage.connect() for _ in range(7)]]

            async def ask(i: int, one: FrontendClient) -> None:
                for value in range(10):
                    await self._echo(one, "rows", np.full((1, 2), 100 * i + value, np.float32))

            await asyncio.gather(*(ask(i, one) for i, one in enumerate(others)))

        self.play(body)

    # errors ---------------------------------------------------------------------------

    def test_an_unknown_model_is_refused_by_name(self) -> None:
        self._refused("no_such_model", {"x": X}, "no_such_model", {Kind.NOT_FOUND, Kind.INVALID})

    def test_an_unknown_version_is_refused(self) -> None:
        self._refused("echo", {"x": X}, "7", {Kind.NOT_FOUND, Kind.INVALID}, version="7")

    def test_an_unknown_input_is_refused_by_name(self) -> None:
        self._refused("echo", {"wrong": X}, "wrong", {Kind.INVALID})

    def test_a_wrong_shape_is_refused_by_the_name_of_its_input(self) -> None:
        self._refused("rows", {"x": np.ones((1, 3), np.float32)}, "'x'", {Kind.INVALID})

    def test_an_error_of_the_model_comes_back_with_its_text(self) -> None:
        self._refused("broken", {"x": X}, "broken by nature", {Kind.INTERNAL})

    def test_a_request_that_is_too_large_is_refused(self) -> None:
        self.needs("limits")

        async def body(stage: Stage, client: FrontendClient) -> None:
            with pytest.raises(Exception):  # noqa: B017 - a server may close the connection
                await client.too_large()

            await self._echo(await stage.connect(), "echo", X)

        self.play(body)

    # streams --------------------------------------------------------------------------

    def test_a_stream_gives_its_answers_in_order_and_ends(self) -> None:
        self._streams(1)

    def test_streams_do_not_mix(self) -> None:
        self._streams(5)

    def test_a_stream_of_nothing_ends(self) -> None:
        self.needs("stream")

        async def body(stage: Stage, client: FrontendClient) -> None:
            nothing = {"x": np.array([0], np.int32)}

            assert [each async for each in client.stream("count", nothing)] == []

        self.play(body)

    def test_an_error_in_a_stream_comes_back(self) -> None:
        self.needs("stream")

        async def body(stage: Stage, client: FrontendClient) -> None:
            with pytest.raises(CoreError, match="no_such_model"):
                async for _ in client.stream("no_such_model", COUNT):
                    pass

        self.play(body)

    def test_a_model_waits_for_a_client_that_does_not_read(self) -> None:
        self.needs("stream", "backpressure")

        async def body(stage: Stage, client: FrontendClient) -> None:
            answers = client.stream("flood", {"x": np.array([FLOOD], np.int32)})
            await answers.__anext__()

            await stage.seen.held.wait()

            assert stage.seen.flooded < FLOOD
            await client.close()

        self.play(body)

    # leaving --------------------------------------------------------------------------

    def test_a_call_that_is_given_up_cancels_its_request(self) -> None:
        self.needs("cancel")

        async def body(stage: Stage, client: FrontendClient) -> None:
            call = stage.begin(client.infer("gated", {"x": X}))
            await stage.seen.running.wait()

            call.cancel()

            await stage.seen.cancelled.wait()

        self.play(body)

    def test_a_client_that_leaves_cancels_its_requests(self) -> None:
        self.needs("cancel")

        async def body(stage: Stage, client: FrontendClient) -> None:
            call = stage.begin(client.infer("gated", {"x": X}))
            await stage.seen.running.wait()

            await client.close()

            await stage.seen.cancelled.wait()
            await asyncio.wait([call])

        self.play(body)

    def test_a_client_that_leaves_disturbs_no_other(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            other = await stage.connect()
            stage.begin(client.infer("gated", {"x": X}))
            await stage.seen.running.wait()

            await client.close()
            if "cancel" in self.supports:  # then the server has noticed
                await stage.seen.cancelled.wait()

            await self._echo(other, "echo", X)

        self.play(body)

    # the end --------------------------------------------------------------------------

    def test_stop_waits_for_what_is_in_flight(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            call = stage.begin(client.infer("gated", {"x": X}))
            await stage.seen.running.wait()

            end = stage.begin(stage.frontend.stop(PATIENCE_S))
            await asyncio.wait([end], timeout=0.1)
            assert not end.done(), "stop did not wait for the request in flight"
            stage.seen.gate.set()

            _same(await call, {"y": X, "z": X})
            await end

        self.play(body)

    def test_stop_gives_up_when_its_time_has_passed(self) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            call = stage.begin(client.infer("gated", {"x": X}))
            await stage.seen.running.wait()

            await stage.frontend.stop(0.1)

            stage.seen.gate.set()
            await asyncio.wait([call])

        self.play(body)

    # the steps of several tests -------------------------------------------------------

    def _echoes(self, model: str, array: np.ndarray) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            await self._echo(client, model, array)

        self.play(body)

    async def _echo(self, client: FrontendClient, model: str, array: np.ndarray) -> None:
        _same(await client.infer(model, {"x": array}), {"y": array, "z": array})

    def _refused(
        self, model: str, inputs: Arrays, text: str, kinds: set[Kind], version: str = ""
    ) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            with pytest.raises(CoreError) as caught:
                await client.infer(model, inputs, version=version)

            assert caught.value.kind in kinds, caught.value.message
            assert text in caught.value.message
            await self._echo(client, "echo", X)  # the client goes on as if nothing had been

        self.play(body)

    def _streams(self, count: int) -> None:
        self.needs("stream")

        async def body(stage: Stage, client: FrontendClient) -> None:
            clients = [client, *[await stage.connect() for _ in range(count - 1)]]

            async def read(one: FrontendClient) -> list[int]:
                return [
                    int(np.asarray(each["y"]).ravel()[0])
                    async for each in one.stream("count", COUNT)
                ]

            for values in await asyncio.gather(*map(read, clients)):
                assert values == [3, 2, 1]

        self.play(body)


def _set_port(stage: Stage, name: str, port: int) -> None:
    options = stage.server.options
    if hasattr(options, f"{name}_port"):
        setattr(options, f"{name}_port", port)
    else:
        options.added[f"{name}_port"] = port


def _same(found: Arrays, expected: Arrays) -> None:
    Example(None, Path(), expected, expected).check(found)  # type: ignore[arg-type]  # only compared


async def _false_or_refused(answer: Awaitable[bool]) -> bool:
    try:
        return await answer
    except CoreError:
        return False
