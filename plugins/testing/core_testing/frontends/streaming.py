"""Contract tests of streams.

Answers come in order and do not mix, a stream may have none, an error arrives as one, and the model waits for
a client that does not read.
"""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import CoreError
from core_testing.frontends.client import FrontendClient
from core_testing.frontends.kit import COUNT, FrontendKit, played
from core_testing.frontends.stage import FLOOD, Stage


class FrontendStreams(FrontendKit):
    def test_a_stream_gives_its_answers_in_order_and_ends(self) -> None:
        self.streams(1)

    def test_streams_do_not_mix(self) -> None:
        self.streams(5)

    @played("stream")
    async def test_a_stream_without_answers_ends(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        nothing = {"x": np.array([0], np.int32)}

        assert [each async for each in client.stream("count", nothing)] == []

    @played("stream")
    async def test_an_error_in_a_stream_comes_back(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        with pytest.raises(CoreError, match="no_such_model"):
            async for _ in client.stream("no_such_model", COUNT):
                pass

    @played("stream", "backpressure")
    async def test_a_model_waits_for_a_client_that_does_not_read(
        self, stage: Stage, client: FrontendClient
    ) -> None:
        answers = client.stream("flood", {"x": np.array([FLOOD], np.int32)})
        await answers.__anext__()

        await stage.seen.held.wait()

        assert stage.seen.flooded < FLOOD
        await client.close()
