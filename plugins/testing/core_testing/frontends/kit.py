"""FrontendKit: the base of the groups of tests of a frontend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from core.errors import CoreError, Kind
from core_testing.example import Arrays, Example
from core_testing.frontends.client import CAPABILITIES, FrontendClient
from core_testing.frontends.stage import DATATYPES, PATIENCE_S, Stage, stage

X = np.array([1.5, -2.0, 3.25], np.float32)
COUNT = {"x": np.array([3], np.int32)}

Body = Callable[[Stage, FrontendClient], Awaitable[None]]
Scene = Callable[[Any, Stage, FrontendClient], Awaitable[None]]


class FrontendKit:
    """The base of every group of tests. Its tests need no plugin of pytest.

    frontend    the class under test, as in its entry point. An instance that listens has an attribute `port`
    client      the FrontendClient of its transport
    name        of the frontend: the options <name>_address and <name>_port are its address
    options     options of the server in all tests. Options that core does not define go to options.added
    supports    capabilities of the frontend, words of CAPABILITIES; tests of others are skipped
    datatypes   names of the datatypes that the transport can carry
    patience_s  time limit of one test in seconds
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
        """Run the coroutine function `body` with a server, the frontend and one client.

        load   whether the server loads its models before
        more   further models: name → configuration
        Raises TimeoutError after `patience_s`.
        """

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
            await self.echo(client, "echo", X)  # the client still works

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


def played(*needs: str, **how: Any) -> Callable[[Scene], Callable[[Any], None]]:
    """Return a decorator that makes a test of a coroutine method, which takes a Stage and a client.

    needs   capabilities; the test is skipped if the frontend lacks one
    how     keyword arguments of FrontendKit.play
    """

    def test_of(scene: Scene) -> Callable[[Any], None]:
        def test(self: FrontendKit) -> None:
            self.needs(*needs)
            self.play(partial(scene, self), **how)

        # Not functools.wraps: pytest would take the arguments of the coroutine for fixtures.
        test.__name__, test.__doc__ = scene.__name__, scene.__doc__
        return test

    return test_of


def set_port(stage: Stage, name: str, port: int) -> None:
    stage.server.options = stage.server.options.changed(**{f"{name}_port": port})


def same(found: Arrays, expected: Arrays) -> None:
    Example(None, Path(), expected, expected).check(found)  # type: ignore[arg-type]  # only compared


async def false_or_refused(answer: Awaitable[bool]) -> bool:
    try:
        return await answer
    except CoreError:
        return False
