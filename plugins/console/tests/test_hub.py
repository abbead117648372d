"""The hub: one look at a time, its end, and texts that are no Unicode."""

import asyncio
import json

import pytest
from core_console.hub import Hub

from core.errors import CoreError


class Slow:
    """A source whose looks take a moment; counts them."""

    def __init__(self, reason="no memory"):
        self.looks = self.most = self.now = 0
        self.reason = reason
        self.entered = asyncio.Event()

    def rest(self):
        pass

    async def look(self):
        self.looks += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.entered.set()
        await asyncio.sleep(0.01)
        self.now -= 1
        return {"rows": [{"model": "m", "version": 1, "reason": self.reason}], "idle": []}


async def test_two_pages_that_open_at_once_share_one_look():
    source = Slow()
    hub = Hub(source)

    pages = await asyncio.gather(*(hub.subscribe(lambda: None) for _ in range(2)))

    one, other = [await each.first() for each in pages]
    hub.close()
    assert one == other and one.startswith(b"event: whole\n")
    assert (source.looks, source.most) == (1, 1)


async def test_a_closed_hub_takes_no_page():
    source = Slow()
    hub = Hub(source)
    opening = asyncio.create_task(hub.subscribe(lambda: None))
    await source.entered.wait()

    hub.close()

    for late in (opening, hub.subscribe(lambda: None)):
        with pytest.raises(CoreError, match="Server exiting"):
            await late
    assert source.looks == 1


async def test_half_of_a_surrogate_pair_is_shown_as_a_question_mark():
    hub = Hub(Slow(reason="file \udc80 é"))

    page = await hub.subscribe(lambda: None)

    event = await page.first()
    hub.close()
    (row,) = json.loads(event.split(b"data: ")[1])["rows"]
    assert row["reason"] == "file ? é"
