"""Events of streams: written at once while the client keeps up, in order in any case."""

import asyncio
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backlog import Backlog
from core.dtypes import BYTES
from core.errors import invalid
from core.response import InferenceResponse
from core.system.account import UNCOUNTED
from core.tensor import Tensor
from frontends.http.codec import generate as codec
from frontends.http.native.event_stream import EventQueue, PartWriter, TextEvents

TURN_S = 0.004  # longer than parts are held


class Transport:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return self.closing


class Stream:
    """A queue with a writer, and what both use."""

    def __init__(self, chunked: bool = False):
        self.transport = Transport()
        self.protocol = SimpleNamespace(_paused=False)
        self.response = SimpleNamespace(output_size=0)
        self.writer = PartWriter(self.transport, self.protocol, self.response, chunked)
        self.queue = EventQueue(Backlog(lambda error: None))

    def add(self, part: bytes) -> None:
        self.queue.add(part, len(part))

    @property
    def written(self) -> bytes:
        return b"".join(self.transport.writes)


def texts(*elements: bytes, name: str = "text_output", id: str = "") -> InferenceResponse:
    raw = b"".join(len(each).to_bytes(4, "little") + each for each in elements)
    return InferenceResponse("m", 1, [Tensor(name, BYTES, (len(elements),), raw=raw)], id=id)


class Listener:
    """TextEvents, and what it leaves to others."""

    def __init__(self, ignores_finish: bool = False):
        self.queue = EventQueue(Backlog(lambda error: None))
        self.others: list[object] = []
        self.texts = TextEvents(
            self.queue, lambda item, final: self.others.append(item), ignores_finish
        )

    async def events(self) -> bytes:
        self.queue.end()
        return await self.queue.take() or b""


class TestWriting:
    async def test_a_part_is_written_at_once(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.add(b"one")
        assert stream.transport.writes == [b"one"]
        assert stream.response.output_size == 3

    async def test_chunks_have_their_size_in_front(self):
        stream = Stream(chunked=True)
        stream.queue.attach(stream.writer)
        stream.add(b"x" * 300)
        assert stream.transport.writes == [b"12c\r\n" + b"x" * 300 + b"\r\n"]
        assert stream.response.output_size == 307

    async def test_parts_that_follow_at_once_share_a_write(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        for each in (b"one", b"two", b"three"):
            stream.add(each)
        assert stream.transport.writes == [b"one"]
        await asyncio.sleep(TURN_S)
        assert stream.transport.writes == [b"one", b"twothree"]

    async def test_a_part_after_a_pause_is_not_held(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.add(b"one")
        await asyncio.sleep(TURN_S)
        stream.add(b"two")
        assert stream.transport.writes == [b"one", b"two"]

    async def test_held_parts_are_written_when_they_are_many(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        for _ in range(5):
            stream.add(b"x" * 4096)
        assert list(map(len, stream.transport.writes)) == [4096]
        stream.add(b"y")
        assert list(map(len, stream.transport.writes)) == [4096, 4 * 4096 + 1]

    async def test_closing_drops_what_is_held(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.add(b"one")
        stream.add(b"two")
        stream.writer.close()
        await asyncio.sleep(TURN_S)
        assert stream.transport.writes == [b"one"]

    async def test_nothing_is_written_to_a_closed_connection(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.add(b"one")
        stream.add(b"two")
        stream.transport.closing = True
        await asyncio.sleep(TURN_S)
        assert stream.transport.writes == [b"one"]


class TestWaiting:
    async def test_parts_wait_for_a_writer(self):
        stream = Stream()
        stream.add(b"one")
        stream.add(b"two")
        assert await stream.queue.take() == b"onetwo"

    async def test_parts_wait_for_a_slow_client(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.protocol._paused = True
        stream.add(b"one")
        stream.protocol._paused = False
        stream.add(b"two")  # not before "one"
        assert stream.transport.writes == []
        assert await stream.queue.take() == b"onetwo"

    async def test_parts_wait_while_another_is_written(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.writer.busy = True
        stream.add(b"one")
        assert stream.transport.writes == []
        stream.writer.busy = False
        assert await stream.queue.take() == b"one"

    async def test_a_large_part_waits(self):
        stream = Stream()
        stream.queue.attach(stream.writer)
        stream.add(b"x" * (UNCOUNTED + 1))
        assert stream.transport.writes == []

    async def test_objects_are_taken_one_by_one(self):
        stream = Stream()
        item = object()
        stream.add(b"one")
        stream.queue.add(item, 5)
        stream.add(b"two")
        stream.queue.end()
        assert [await stream.queue.take() for _ in range(4)] == [b"one", item, b"two", None]

    async def test_taken_parts_are_at_most_64_kib(self):
        stream = Stream()
        for _ in range(20):
            stream.add(b"x" * 10_000)
        assert len(await stream.queue.take()) == 70_000  # the part that passes 64 KiB is the last

    async def test_after_the_end_nothing_is_added(self):
        stream = Stream()
        stream.queue.end()
        stream.add(b"one")
        assert await stream.queue.take() is None

    async def test_the_backlog_counts_what_waits(self):
        counted: list[tuple[int, int]] = []
        backlog = SimpleNamespace(
            add=lambda size, answers: counted.append((size, answers)),
            take=lambda size, answers: counted.append((-size, -answers)),
        )
        queue = EventQueue(backlog)  # type: ignore[arg-type]
        for _ in range(33):
            queue.add(b"one", 3)
        assert counted == [(96, 32)]  # a call for several
        queue.add(b"large", 20_000)
        assert counted == [(96, 32), (20_003, 2)]
        queue.add(b"three", 5)
        await queue.take()
        assert counted == [(96, 32), (20_003, 2), (5, 1), (-20_104, -35)]

    @given(st.lists(st.sampled_from(["add", "pause", "resume", "take", "turn", "large"])))
    def test_the_order_is_kept(self, steps: list[str]):
        async def play() -> None:
            stream, added = Stream(), b""
            stream.queue.attach(stream.writer)
            for number, step in enumerate([*steps, "resume"]):
                if step in ("add", "large"):
                    part = b"<%d>" % number
                    part += b"x" * UNCOUNTED if step == "large" else b""
                    added += part
                    stream.add(part)
                elif step in ("pause", "resume"):
                    stream.protocol._paused = step == "pause"
                elif step == "turn":
                    stream.writer.flush()
                elif not stream.protocol._paused:
                    await self._send(stream)
            await self._send(stream)
            stream.writer.flush()
            assert stream.written == added

        asyncio.run(play())

    @staticmethod
    async def _send(stream: Stream) -> None:
        """Do what the sender of a response does with the parts that wait."""
        while True:
            task = asyncio.ensure_future(stream.queue.take())
            await asyncio.sleep(0)
            if not task.done():
                task.cancel()
                return
            stream.writer.busy = True
            stream.writer.flush()
            stream.transport.write(task.result())
            stream.writer.busy = False


class TestTexts:
    @given(st.text(min_size=1), st.sampled_from(["", "1", 'a"b']), st.sampled_from(["z", "a", "n"]))
    def test_an_event_equals_that_of_the_codec(self, text: str, id: str, name: str):
        response = texts(text.encode("utf-8", "replace"), name=name, id=id)
        found = codec.around_text(response)
        assert found is not None

        async def play() -> bytes:
            listener = Listener()
            listener.texts.begin(*found)
            listener.texts(response, False)
            assert listener.others == []
            return await listener.events()

        assert asyncio.run(play()) == codec.write(response)

    async def test_texts_before_the_begin_are_for_others(self):
        listener, item = Listener(), texts(b"one")
        listener.texts(item, False)
        assert listener.others == [item]

    @pytest.mark.parametrize(
        "item",
        [
            texts(b""),
            texts(b"one", b"two"),
            texts(b"one", name="other"),
            texts(b"x" * (UNCOUNTED + 1)),
            InferenceResponse("m", 1, []),
            InferenceResponse("m", 1, texts(b"one").outputs, parameters={"a": 1}),
            InferenceResponse("m", 1, [*texts(b"one").outputs, *texts(b"stop", name="y").outputs]),
            invalid("no"),
            None,
        ],
        ids=repr,
    )
    async def test_others_take_what_is_no_plain_text(self, item):
        listener = Listener()
        listener.texts.begin("text_output", b"<", b">")
        listener.texts(item, False)
        assert listener.others == [item]
        listener.texts(texts(b"one"), False)
        assert await listener.events() == b'<"one">'

    async def test_the_last_item_is_for_others(self):
        listener = Listener()
        listener.texts.begin("text_output", b"<", b">")
        listener.texts(item := texts(b"one"), True)
        assert listener.others == [item]

    async def test_after_a_cut_character_others_take_all(self):
        listener = Listener()
        listener.texts.begin("text_output", b"<", b">")
        cut, rest = texts("é".encode()[:1]), texts("é".encode()[1:])
        listener.texts(cut, False)
        listener.texts(rest, False)
        assert listener.others == [cut, rest]

    @pytest.mark.parametrize("reason, taken", [(b"None", True), (b"stop", False), (b"", False)])
    async def test_a_finish_reason_may_be_ignored(self, reason: bytes, taken: bool):
        listener = Listener(ignores_finish=True)
        listener.texts.begin("text_output", b"<", b">")
        outputs = [*texts(b"one").outputs, *texts(reason, name="finish_reason").outputs]
        listener.texts(item := InferenceResponse("m", 1, outputs), False)
        assert listener.others == ([] if taken else [item])

    async def test_an_array_is_as_good_as_the_wire_form(self):
        listener = Listener()
        listener.texts.begin("text_output", b"<", b">")
        array = np.array([[b'say "hi"\n']], object)
        tensor = Tensor("text_output", BYTES, (1, 1), array=array)
        listener.texts(InferenceResponse("m", 1, [tensor]), False)
        found = await listener.events()
        assert json.loads(re.sub(b"^<|>$", b"", found)) == 'say "hi"\n'
