"""What goes wrong: servers that are not there, end, or do not answer; models and inputs that do not fit."""

import socket
import threading
import time

import pytest
from core_bench.command import run
from core_bench.measure.rounds import Measurement
from core_bench.measure.target import Target
from core_bench.plan import Level, Pace, Plan, Side, Timing

from core.errors import CoreError

TIMING = Timing(round_s=0.2, rounds=2, most_rounds=2, settle_s=0.0, warmup_s=0.0, give_up_s=0.3)


def refused(side):
    with pytest.raises(CoreError) as error, Target(side, TIMING) as target:
        target.check()
    return error.value.message


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_server_that_is_not_there(protocol):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        text = refused(Side("m", "m", f"127.0.0.1:{port}", protocol=protocol))

    assert f"no server answers at 127.0.0.1:{port}" in text
    assert "core serve" in text


@pytest.mark.parametrize("url", ["ftp://a", "localhost:none", "unix:"])
def test_an_address_that_is_none(url):
    assert "expected" in refused(Side("m", "m", url))


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_an_unknown_model_has_the_nearest_names(served, protocol):
    text = refused(served.side("duoble", protocol))

    assert "has no model 'duoble'; did you mean 'double'?" in text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"shapes": {"x": (3,)}}, r"--shape x:3 does not fit input 'x', whose dims are \[4\]"),
        ({"shapes": {"X": (4,)}}, "input 'X' that model 'double' does not have; did you mean 'x'"),
        ({"batch": 9}, "-b 9 is above the max_batch_size of model 'double', 8"),
        ({"input_data": ("/none",)}, "cannot read the input data in '/none'"),
        ({"version": "7"}, "version 7"),
    ],
)
def test_requests_that_do_not_fit_the_model(served, more, text):
    with pytest.raises(CoreError, match=text):
        Target(served.side("double", **more), TIMING)


def test_a_decoupled_model_needs_a_stream(served):
    assert "use -i grpc --streaming" in refused(served.side("words"))


@pytest.mark.parametrize("level", [Level(Pace.CLOSED, 4), Level(Pace.CONSTANT, 500)], ids=str)
def test_a_server_that_ends_in_the_middle_leaves_what_was_measured(known, level, monkeypatch):
    server = known([1000])
    measured, one = [], Measurement._one

    def ending(self, case, target, *round_):
        measured.append(round_)
        if len(measured) == 2:
            threading.Timer(0.1, server.process.kill).start()
        one(self, case, target, *round_)

    monkeypatch.setattr(Measurement, "_one", ending)
    timing = Timing(
        round_s=0.3, rounds=20, most_rounds=20, settle_s=0.0, warmup_s=0.0, give_up_s=0.3
    )
    began = time.monotonic()

    outcome = run(Plan([server.side()], [level], timing))

    assert time.monotonic() - began < 60
    assert "does not accept connections any more" in outcome.lost
    assert outcome.failed
    assert outcome.results[0].rounds[0].tally.counts["completed"] > 0
    assert any("connect" in text for text in outcome.results[0].errors())


def test_an_answer_that_does_not_come_is_an_error(known):
    timing = Timing(settle_s=0.0, warmup_s=0.0, timeout_s=0.1)
    with Target(known([0, 10_000_000]).side(), timing) as target:
        tally, _ = target.generator(Level(Pace.CLOSED, 2)).run(0.0, 0.3, 0)

    assert tally.errors["timeout"] >= 1


class Raw:
    """A server that sends the same bytes to every request, then perhaps closes."""

    def __init__(self, *pieces, closes=False):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.pieces, self.closes = pieces, closes
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            while client.recv(65536):
                for piece in self.pieces:
                    client.sendall(piece)
                    time.sleep(0.002)
                if self.closes:
                    return


def tally_of(raw, **more):
    from core_bench.load.compiled import CompiledGenerator
    from core_bench.load.plan import Answer, Transport, WirePlan
    from core_bench.wire.request import WireRequest

    plan = WirePlan(
        Transport.HTTP,
        more.get("answer", Answer.WHOLE),
        "127.0.0.1",
        raw.port,
        "",
        (),
        False,
        [WireRequest(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")],
        [[0]],
        None,
    )
    tally, _ = CompiledGenerator(plan, 1, 0.5, 1.0).run(0.0, 0.05, 3)
    raw.socket.close()
    return tally


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
        [b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 5\r\n\r", b"\nhel", b"lo"],
        [
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n"
        ],
        [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"2\r",
            b"\nhe\r\n0\r\n",
            b"\r\n",
        ],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ],
)
def test_answers_in_pieces(pieces):
    tally = tally_of(Raw(*pieces))

    assert not tally.errors
    assert tally.counts["completed"] >= 3


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n\r\nx", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"]
)
def test_a_server_that_closes_after_each_answer(head):
    tally = tally_of(Raw(head, closes=True))

    assert not tally.errors
    assert tally.counts["completed"] >= 3


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([b"SSH-2.0-x\r\n\r\n"], "no valid HTTP"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"], "within its answer"),
        ([b""], "before it answered"),
        (
            [b'HTTP/1.1 500 No\r\nContent-Length: 15\r\n\r\n{"error":"why"}'],
            'HTTP 500 {"error":"why"}',
        ),
    ],
)
def test_wrong_answers_are_errors(pieces, text):
    tally = tally_of(Raw(*pieces, closes=True))

    assert any(text in each for each in tally.errors)
    assert tally.counts["completed"] == 0


def test_events_in_pieces():
    from core_bench.load.plan import Answer

    head = b"HTTP/1.1 200 OK\r\nContent-Length: 56\r\n\r\n"
    body = [b'data: {"a":1}\n', b'\ndata: {"a":2}\r\n\r\n: comment\n\n', b"data: [DONE]\n\n"]
    head = head.replace(b"56", str(sum(map(len, body))).encode())

    tally = tally_of(Raw(head, *body), answer=Answer.EVENTS)

    assert not tally.errors
    # [DONE] is OpenAI's; for generate_stream it is an event as all others.
    assert tally.counts["responses"] == 3 * tally.counts["completed"]


def test_an_event_with_an_error_is_one():
    from core_bench.load.plan import Answer

    head = b'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\ndata: {"error":"no more"}'
    tally = tally_of(Raw(head.replace(b"25", b"27"), b"\n\n"), answer=Answer.EVENTS)

    assert list(tally.errors) == ['event {"error":"no more"}']
