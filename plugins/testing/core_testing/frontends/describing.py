"""A frontend starts, reports its health and describes the server and its models."""

from __future__ import annotations

import pytest

from core.errors import CoreError, Kind
from core_testing.frontends.client import FrontendClient
from core_testing.frontends.kit import FrontendKit, false_or_refused, played, set_port
from core_testing.frontends.stage import PATIENCE_S, Stage


class FrontendDescriptions(FrontendKit):
    @played()
    async def test_it_listens_from_start_to_stop(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        assert await client.live()
        await client.close()
        await stage.frontend.stop(1.0)

        with pytest.raises(Exception):  # noqa: B017 - each transport has its own
            late = await stage.connect()
            await late.live()

    @played()
    async def test_it_may_be_stopped_twice(self, stage: Stage, client: FrontendClient) -> None:
        await client.close()
        await stage.frontend.stop(1.0)
        await stage.frontend.stop(1.0)

    @played()
    async def test_a_port_that_is_taken_is_an_error_that_names_it(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        port = stage.frontend.port
        set_port(stage, self.name, port)
        other = self.frontend(stage.server)

        with pytest.raises(CoreError) as caught:
            await other.start()

        await other.stop(1.0)
        assert caught.value.kind is Kind.UNAVAILABLE
        assert str(port) in caught.value.message
        assert await client.live()

    @played()
    async def test_it_reports_whether_server_and_models_are_ready(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        assert await client.live()
        assert await client.ready()
        assert await client.model_ready("echo")
        assert not await false_or_refused(client.model_ready("no_such_model"))

    @played(load=False)
    async def test_it_listens_before_the_models_are_loaded_and_is_not_ready(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        assert not await false_or_refused(client.ready())

        await stage.server.start()

        assert await client.ready()

    @played()
    async def test_it_is_not_ready_while_the_server_ends(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        await stage.server.stop(PATIENCE_S)

        assert not await false_or_refused(client.ready())

    @played("metadata")
    async def test_it_describes_the_server(self, stage: Stage, client: FrontendClient) -> None:
        found = await client.metadata()

        assert found["name"] == stage.server.name
        assert found["version"] == stage.server.version

    @played("metadata")
    async def test_it_describes_a_model(self, stage: Stage, client: FrontendClient) -> None:
        found = await client.model_metadata("rows")

        assert found["name"] == "rows"
        tensors = [
            (t["name"], t["datatype"], [int(d) for d in t["shape"]]) for t in found["inputs"]
        ]
        assert tensors == [("x", "FP32", [-1, 2])]
        assert [t["name"] for t in found["outputs"]] == ["y", "z"]
