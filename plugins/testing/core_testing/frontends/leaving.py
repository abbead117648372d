"""Clients cancel calls or leave, and the frontend stops."""

from __future__ import annotations

import asyncio

from core_testing.frontends.client import FrontendClient
from core_testing.frontends.kit import FrontendKit, X, played, same
from core_testing.frontends.stage import PATIENCE_S, Stage


class FrontendEnds(FrontendKit):
    @played("cancel")
    async def test_a_cancelled_call_cancels_its_request(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        call = stage.begin(client.infer("gated", {"x": X}))
        await stage.seen.running.wait()

        call.cancel()

        await stage.seen.cancelled.wait()

    @played("cancel")
    async def test_a_client_that_leaves_cancels_its_requests(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        call = stage.begin(client.infer("gated", {"x": X}))
        await stage.seen.running.wait()

        await client.close()

        await stage.seen.cancelled.wait()
        await asyncio.wait([call])

    @played()
    async def test_a_client_that_leaves_does_not_affect_others(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        other = await stage.connect()
        stage.begin(client.infer("gated", {"x": X}))
        await stage.seen.running.wait()

        await client.close()
        if "cancel" in self.supports:  # wait until the server has noticed
            await stage.seen.cancelled.wait()

        await self.echo(other, "echo", X)

    @played()
    async def test_stop_waits_for_requests_in_flight(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        call = stage.begin(client.infer("gated", {"x": X}))
        await stage.seen.running.wait()

        end = stage.begin(stage.frontend.stop(PATIENCE_S))
        await asyncio.wait([end], timeout=0.1)
        assert not end.done(), "stop did not wait for the request in flight"
        stage.seen.gate.set()

        same(await call, {"y": X, "z": X})
        await end

    @played()
    async def test_stop_returns_when_its_time_has_passed(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        call = stage.begin(client.infer("gated", {"x": X}))
        await stage.seen.running.wait()

        await stage.frontend.stop(0.1)

        stage.seen.gate.set()
        await asyncio.wait([call])
