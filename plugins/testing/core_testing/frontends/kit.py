"""FrontendKit: what the groups of tests of a frontend share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from core.errors import CoreError, Kind
from core_testing.example import Arrays, Example
from core_testing.frontends.client import CAPABILITIES, FrontendClient
from core_testing.frontends.stage import (
    DATATYPES,
    PATIENCE_S,
    Stage,
    stage,
)

X = np.array([1.5, -2.0, 3.25], np.float32)
COUNT = {"x": np.array([3], np.int32)}

Body = Callable[[Stage, FrontendClient], Awaitable[None]]


class FrontendKit:
    """The base of every group of tests. Its tests need no plugin of pytest.

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

    def echoes(self, model: str, array: np.ndarray) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            await self.echo(client, model, array)

        self.play(body)

    async def echo(self, client: FrontendClient, model: str, array: np.ndarray) -> None:
        same(await client.infer(model, {"x": array}), {"y": array, "z": array})

    def refused(
        self, model: str, inputs: Arrays, text: str, kinds: set[Kind], version: str = ""
    ) -> None:
        async def body(stage: Stage, client: FrontendClient) -> None:
            with pytest.raises(CoreError) as caught:
                await client.infer(model, inputs, version=version)

            assert caught.value.kind in kinds, caught.value.message
            assert text in caught.value.message
            await self.echo(client, "echo", X)  # the client goes on as if nothing had been

        self.play(body)

    def streams(self, count: int) -> None:
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


def set_port(stage: Stage, name: str, port: int) -> None:
    stage.server.options = stage.server.options.changed(**{f"{name}_port": port})


def same(found: Arrays, expected: Arrays) -> None:
    Example(None, Path(), expected, expected).check(found)  # type: ignore[arg-type]  # only compared


async def false_or_refused(answer: Awaitable[bool]) -> bool:
    try:
        return await answer
    except CoreError:
        return False
