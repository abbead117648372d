"""Requests get their own answers, and wrong requests are refused."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from core import dtypes
from core.errors import Kind
from core_testing.frontends.client import FrontendClient
from core_testing.frontends.kit import FrontendKit, X, played
from core_testing.frontends.stage import OF_EACH_DATATYPE, Stage


class FrontendInference(FrontendKit):
    def test_a_request_gets_its_answer(self) -> None:
        self.echoes("echo", X)

    @played(more=OF_EACH_DATATYPE)
    async def test_every_datatype_comes_through(self, stage: Stage, client: FrontendClient) -> None:
        for name in self.datatypes:
            array = np.array([0, 1, 1], dtypes.BY_NAME[name].numpy)
            await self.echo(client, f"of_{name.lower()}", array)

    def test_text_comes_back_unchanged(self) -> None:
        self.echoes("words", np.array([b"", "ä€𝄞".encode(), b'"\\ \n'], object))

    def test_an_empty_tensor_comes_through(self) -> None:
        self.echoes("echo", np.zeros(0, np.float32))

    def test_a_large_tensor_comes_through(self) -> None:
        self.echoes("echo", np.arange(200_000, dtype=np.float32))

    @played()
    async def test_only_the_wanted_output_comes_back(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        found = await client.infer("echo", {"x": X}, outputs=("z",))

        assert list(found) == ["z"]

    @played()
    async def test_many_requests_at_once_get_their_own_answers(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        others = [client, *[await stage.connect() for _ in range(7)]]

        async def ask(i: int, one: FrontendClient) -> None:
            for value in range(10):
                await self.echo(one, "rows", np.full((1, 2), 100 * i + value, np.float32))

        await asyncio.gather(*(ask(i, one) for i, one in enumerate(others)))

    def test_an_unknown_model_is_refused_by_name(self) -> None:
        self.refused("no_such_model", {"x": X}, "no_such_model", {Kind.NOT_FOUND, Kind.INVALID})

    def test_an_unknown_version_is_refused(self) -> None:
        self.refused("echo", {"x": X}, "7", {Kind.NOT_FOUND, Kind.INVALID}, version="7")

    def test_an_unknown_input_is_refused_by_name(self) -> None:
        self.refused("echo", {"wrong": X}, "wrong", {Kind.INVALID})

    def test_a_wrong_shape_is_refused_by_the_name_of_its_input(self) -> None:
        self.refused("rows", {"x": np.ones((1, 3), np.float32)}, "'x'", {Kind.INVALID})

    def test_an_error_of_the_model_comes_back_with_its_text(self) -> None:
        self.refused("broken", {"x": X}, "broken by nature", {Kind.INTERNAL})

    @played("limits")
    async def test_a_request_that_is_too_large_is_refused(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        with pytest.raises(Exception):  # noqa: B017 - a server may close the connection
            await client.too_large()

        await self.echo(await stage.connect(), "echo", X)
