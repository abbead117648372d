"""core replay: the same answers are equal, others are found, and the pace is kept."""

import asyncio
import json
import math
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from core_capture.records.reader import FIRST_LINE, CaptureReader
from core_capture.records.record import Damaged, Record, RecordedMessage, encode
from core_capture.replay.compare import Comparison
from core_capture.replay.http_sender import HttpSender
from core_capture.replay.outcome import Outcome
from core_capture.replay.pace import Pace
from core_capture.replay.run import Replay
from core_capture.tensors.message import Unreadable
from flow.conftest import VirtualTimeLoop

from .conftest import counts, message


@pytest.fixture
def recorded(capture):
    """A capture with calls of each kind; the server has stopped."""
    client = capture(capture_answers=True)
    client.infer(1.0, 2.0, id="mine")
    client.infer(1.0, headers={"Accept-Encoding": "gzip"})
    client.infer(-1.0)
    client.infer(1.0, model="absent")
    client.post("/v2/models/words/generate_stream", {"text_input": "a b c", "id": "x"})
    client.stub.ModelInfer(message(3.0, id="theirs"), timeout=20, metadata=[("x-bin", b"\0\1")])
    with pytest.raises(Exception, match="below zero"):
        client.stub.ModelInfer(message(-1.0), timeout=20)
    list(client.stub.ModelStreamInfer(iter([message(4.0), message(5.0)]), timeout=20))
    client.records(8)
    client.stop()
    return client.folder


def to(client):
    return "--url", client.url, "--grpc-url", client.grpc_url


@pytest.mark.parametrize("more", [(), ("--speed", "max"), ("--speed", "2.5", "--compare", "bytes")])
def test_the_answers_of_the_same_models_are_equal(recorded, plain, command, more):
    done = command("replay", recorded, *to(plain), *more)

    assert (done.status, done.err) == (0, "")
    assert "replayed 8 requests in" in done.out
    assert counts(done.out) == {"answers are equal": 8}
    assert "latency now" in done.out


def test_other_answers_are_found(recorded, capture, command, tmp_path):
    client = capture({"double": lambda x: {"y": x * 2.002}}, folder=tmp_path / "other")

    done = command("replay", recorded, *to(client), "--speed", "max", "--json")

    found = json.loads(done.out)
    assert done.status == 1
    texts = {each["number"]: each["text"] for each in found["differences"]}
    assert texts[0] == "output 'y' differs in 2 of 2 elements, by at most 0.004"
    assert texts[2].startswith("status 500, now 200: ")
    assert texts[7].startswith("answer 0: output 'y' differs in 1 of 1 elements")
    assert (found["equal"], found["differing"]) == (2, 6)
    assert found["differences"][0]["path"] == "/v2/models/double/infer"


def test_a_tolerance(recorded, capture, command, tmp_path):
    client = capture({"double": lambda x: {"y": abs(x) * 2.002}}, folder=tmp_path / "other")
    more = ("--speed", "max", "--model", "double", "--limit", "2", *to(client))

    assert command("replay", recorded, "--tolerance", "0.01", *more).status == 0
    assert command("replay", recorded, "--tolerance", "0.0001", *more).status == 1


def test_a_server_that_is_not_there(recorded, command):
    done = command("replay", recorded, "--url", "127.0.0.1:9", "--grpc-url", "127.0.0.1:9")

    assert done.status == 1
    assert counts(done.out)["no answer"] == 5


def test_answers_that_were_not_recorded_are_not_compared(capture, plain, command):
    client = capture()
    client.infer(1.0)
    client.records(1)

    done = command("replay", client.folder, *to(plain))

    assert done.status == 0
    assert counts(done.out)["not compared"] == 1


def test_headers_are_replaced(recorded, capture, command, tmp_path):
    other = capture(folder=tmp_path / "other")

    command("replay", recorded, *to(other), "--speed", "max", "--header", "X-Mine: now")

    assert all(
        ("x-mine", "now") in [(k.lower(), v) for k, v in each.fields] for each in other.records(8)
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--speed", "0"), "--speed=0: expected a factor"),
        (("--header", "x"), "expected NAME: VALUE"),
        (("--model", "absent"), "no requests of the given kind"),
    ],
)
def test_wrong_arguments(recorded, command, arguments, text):
    done = command(
        "replay", recorded, *(arguments if "absent" not in arguments else ("--model", "no"))
    )

    assert done.status == 1
    assert text in done.err


# comparison ------------------------------------------------------------------------------


def record(answer, status=200, fields="Content-Type: application/json\r\n"):
    return Record(
        0,
        "http",
        "POST /v2/models/m/infer HTTP/1.1\r\n",
        "m",
        status=status,
        answer_head=f"HTTP/1.1 200 OK\r\n{fields}",
        has_answer=True,
        sent=[RecordedMessage(1, answer)],
    )


def answer(*values, datatype="FP32", shape=None, **more):
    output = {
        "name": "y",
        "datatype": datatype,
        "shape": shape or [len(values)],
        "data": list(values),
    }
    return json.dumps(
        {"model_name": "m", "model_version": "1", "outputs": [output], **more}
    ).encode()


def compared(before, now, status=200, **more):
    one = record(before)
    one.answer_head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    fields = [("Content-Type", "application/json")]
    return Comparison(**more).difference(one, Outcome(status, fields, [now]), one)


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (answer(1.0), answer(1.0), ""),
        (answer(1.0, id="a"), answer(1.0, id="b"), ""),
        (answer(1.0), answer(1), ""),  # another form of the same value
        (
            answer(1.0, 2.0),
            answer(1.0, 2.5),
            "output 'y' differs in 1 of 2 elements, by at most 0.5",
        ),
        (
            answer(1, datatype="INT8"),
            answer(2, datatype="INT8"),
            "output 'y' differs in 1 of 1 elements",
        ),
        (
            answer("a", datatype="BYTES"),
            answer("b", datatype="BYTES"),
            "output 'y' differs in 1 of 1 elements",
        ),
        (answer(1.0), answer(1, datatype="INT8"), "output 'y' is FP32[1], now INT8[1]"),
        (answer(1.0, 1.0), answer(1.0, 1.0, shape=[1, 2]), "output 'y' is FP32[2], now FP32[1, 2]"),
        (answer(1.0), answer(1.0, model_version="2"), "model m 1, now m 2"),
        (b"plain", b"plane", "answers differ at byte 3: 'in', now 'ne'"),
        (b'{"a": 1, "created": 5}', b'{"a": 1, "created": 99.5}', ""),
    ],
)
def test_a_difference_is_named(before, now, text):
    assert compared(before, now) == text


def test_bytes_must_be_equal_but_ids(monkeypatch):
    assert compared(answer(1.0), answer(1), exact=True).startswith("answers differ at byte")
    assert compared(answer(1.0, id="a"), answer(1.0, id='b"c'), exact=True) == ""
    assert compared(answer(1.0, id="a"), answer(1.0, id="b"), exact=True, ignored=()) != ""


def test_a_status_is_compared_with_its_text():
    assert compared(b"x", b"why", 500) == "status 200, now 500: 'why'"


def test_numbers_that_are_none():
    output = {"name": "y", "datatype": "FP32", "shape": [2]}
    output["parameters"] = {"binary_data_size": 8}
    nan = json.dumps({"model_name": "m", "outputs": [output]}).encode()
    raw = [np.array([np.nan, value], np.float32).tobytes() for value in (1, 2)]
    size = f"Inference-Header-Content-Length: {len(nan)}\r\n"
    fields = [tuple(size.strip().split(": "))]

    before = record(nan + raw[0], fields=size)

    assert Comparison().difference(before, Outcome(200, fields, [nan + raw[0]]), before) == ""
    text = Comparison().difference(before, Outcome(200, fields, [nan + raw[1]]), before)
    assert text == "output 'y' differs in 1 of 2 elements, by at most 1"


# pace ---------------------------------------------------------------------------------------


def at(begin_s, end_s):
    return Record(int(begin_s * 1e9), "http", "", duration_ns=int((end_s - begin_s) * 1e9))


def played(speed, records, take_s=0.0, **more):
    """The times at which records are sent, in virtual seconds, if each answer takes `take_s`."""

    async def play():
        loop, pace, sent, tasks = asyncio.get_running_loop(), Pace(speed, **more), [], []

        async def answer(number):
            await asyncio.sleep(take_s)
            pace.answered(number)

        for number, each in enumerate(records):
            await pace.turn(number, each)
            sent.append(round(loop.time(), 3))
            tasks.append(asyncio.ensure_future(answer(number)))
        await asyncio.gather(*tasks)
        return [each - sent[0] for each in sent]

    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(play())
    finally:
        loop.close()


def test_as_fast_as_possible_keeps_the_order():
    records = [at(0, 5), at(1, 2), at(3, 4), at(6, 7)]

    # The third waits for the second, which had ended before it began; the last for all.
    assert played(math.inf, records, 1.0) == [0, 0, 1, 2]


def test_the_recorded_pace_and_others():
    records = [at(10, 20), at(11, 12), at(14, 15)]

    assert played(1, records, 5.0) == [0, 1, 4]
    assert played(2, records) == [0, 0.5, 2]
    assert played(0.5, records) == [0, 2, 8]


def test_the_order_is_kept_at_any_pace():
    records = [at(0, 1), at(2, 3), at(4, 5)]

    assert played(1, records, 5.0, ordered=True) == [0, 5, 10]
    assert played(1, records, 0.1, ordered=True) == [0, 2, 4]


async def replayed_in_order(monkeypatch, read, count):
    """Replay records that overlap in their order; return the numbers that arrived, and the results."""
    arrived = []

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        arrived.append(int(head.split(b" ")[1][1:]))
        await asyncio.sleep(0.2)  # so that all overlap
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    records = [
        Record(place, "http", f"GET /{place} HTTP/1.1\r\n", duration_ns=1000)
        for place in range(count)
    ]
    monkeypatch.setattr(CaptureReader, "read", lambda place: read(place) or records[place])
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        sender = HttpSender(f"127.0.0.1:{port}", {}, 20)
        plan = SimpleNamespace(items=list(enumerate(records)))
        results = await Replay(plan, {"http": sender}, None, Pace(1, True)).run()
        await sender.close()
    return arrived, results


async def test_requests_that_overlap_reach_the_server_in_their_order(monkeypatch):
    """Of sequences that wait for a slot, the first one gets it; in another order they may wait for ever."""

    def read(place):
        time.sleep(0.02 * (9 - place))  # the first one is read last

    arrived, results = await replayed_in_order(monkeypatch, read, 9)

    assert arrived == list(range(9))
    assert results.counts == {"uncompared": 9}


@pytest.mark.parametrize(
    ("error", "counted"),
    [(Damaged("not there any more"), "unanswered"), (Unreadable("it has no form"), "unsent")],
)
async def test_a_record_that_cannot_be_sent_does_not_let_the_next_one_go_early(
    monkeypatch, error, counted
):
    failed = threading.Event()

    def read(place):
        if place == 1:
            failed.set()
            raise error
        if place == 0:
            assert failed.wait(20)
            time.sleep(0.2)  # in which the third one would be sent

    arrived, results = await replayed_in_order(monkeypatch, read, 3)

    assert arrived == [0, 2]
    assert results.counts == {"uncompared": 2, counted: 1}


def test_a_request_whose_client_had_left_is_sent_and_not_compared(capture, plain, command):
    client = capture(capture_answers=True)
    client.infer(1.0)
    (record,) = client.records(1)
    (file,) = client.folder.iterdir()
    record.status = 499
    file.write_bytes(FIRST_LINE + b"".join(encode(record)))

    done = command("replay", client.folder, *to(plain))

    assert (done.status, counts(done.out)["not compared"]) == (0, 1)


@pytest.mark.parametrize(("took_ns", "timeout_s"), [(0, 60.0), (10**15, 0.1)])
async def test_a_request_whose_client_had_left_ends_also_without_an_answer(took_ns, timeout_s):
    heads = []

    async def keep(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))

    server = await asyncio.start_server(keep, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    sender = HttpSender(f"127.0.0.1:{port}", {}, timeout_s)
    one = Record(0, "http", "GET /x HTTP/1.1\r\n", status=499, duration_ns=took_ns)
    speed = 1.0 if took_ns else math.inf

    found = await asyncio.wait_for(sender.send(one, speed), 20)

    assert (found.status, found.ended, len(heads)) == (-1, True, 1)
    await sender.close()
    server.close()


async def test_a_target_that_is_none_is_an_answer_that_is_missing():
    sender = HttpSender("127.0.0.1:1", {}, 1.0)

    found = await sender.send(Record(0, "http", "GET :x:y HTTP/1.1\r\n"), 1.0)

    assert found.status == -1 and found.text
    await sender.close()


def test_texts_of_errors_over_grpc_may_have_any_character(capture, command, tmp_path):
    def fail(x):
        raise ValueError("snow \u2603\nand a line")

    client = capture({"double": fail}, capture_answers=True)
    with pytest.raises(Exception, match="snow"):
        client.stub.ModelInfer(message(1.0), timeout=20)
    client.records(1)

    done = command("replay", client.folder, *to(client))

    assert counts(done.out) == {"answers are equal": 1}
