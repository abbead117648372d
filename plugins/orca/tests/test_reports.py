"""Load reports as gRPC's clients read them: in trailers, and as a stream."""

import asyncio
import base64
import socket
import struct
import time

import grpc
import pytest
from balancing import Timed, request, serving
from core_orca import messages
from core_orca.reports import MOST_STREAMS, BinaryReports
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, StreamEnded, StreamReset

import core
from core.errors import CoreError, Kind
from frontends.shared.load_reports import LoadReports

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
BINARY = "endpoint-load-metrics-bin"
TEXT = "endpoint-load-metrics"


class Caller:
    """Makes unary calls and returns their trailers: grpcio keeps load reports from its applications."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), 20)
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._h2.initiate_connection()

    def infer(self, message=None, **metadata):
        """Send a request; return the last headers of its response."""
        number = self._h2.get_next_available_stream_id()
        head = {
            ":method": "POST", ":scheme": "http", ":path": INFER, ":authority": "x",
            "content-type": "application/grpc", "te": "trailers", **metadata,
        }  # fmt: skip
        body = (message or request()).SerializeToString()
        self._h2.send_headers(number, list(head.items()))
        self._h2.send_data(number, struct.pack(">BI", 0, len(body)) + body, end_stream=True)
        found = {}
        while True:
            self._socket.sendall(self._h2.data_to_send())
            for event in self._h2.receive_data(self._socket.recv(65536)):
                assert not isinstance(event, StreamReset | ConnectionTerminated)
                found = dict(getattr(event, "headers", found))
                if isinstance(event, StreamEnded):
                    return found

    def close(self):
        self._socket.close()


@pytest.fixture(params=["auto", "grpcio"])
def caller(request):
    with serving(Timed(0.002), orca_trailers=True, grpc_engine=request.param) as (ports, _):
        found = Caller(ports[0])
        yield found
        found.close()


@pytest.fixture(scope="module")
def port():
    """The port of a server with the plugin's defaults."""
    with serving(Timed(0.002)) as (ports, _):
        yield ports[0]


@pytest.fixture
def channel(port):
    with grpc.insecure_channel(f"127.0.0.1:{port}") as found:
        yield found


def open_stream(channel, seconds=0, nanos=0):
    method = channel.unary_stream(STREAM, response_deserializer=messages.OrcaLoadReport.FromString)
    wanted = messages.OrcaLoadReportRequest()
    wanted.report_interval.seconds = seconds
    wanted.report_interval.nanos = nanos
    return method(wanted.SerializeToString(), timeout=20)


def refusal(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value


def test_each_response_has_a_report_that_nobody_asked_for(caller):
    caller.infer()
    time.sleep(0.3)  # a report is repeated for a quarter of a second
    report = messages.OrcaLoadReport.FromString(base64.b64decode(caller.infer()[BINARY] + "=="))

    assert report.rps_fractional > 0
    assert report.application_utilization > 0
    assert report.eps == 0
    assert report.named_metrics["requests_pending"] == 0


def test_an_error_has_one_too(caller):
    wrong = request()
    wrong.inputs[0].name = "z"
    trailers = caller.infer(wrong)

    assert trailers["grpc-status"] == str(grpc.StatusCode.INVALID_ARGUMENT.value[0])
    assert BINARY in trailers


def test_a_report_that_is_asked_for_takes_its_place(caller):
    trailers = caller.infer(**{"endpoint-load-metrics-format": "json"})

    assert trailers[TEXT].startswith("JSON {")
    assert '"application_utilization":' in trailers[TEXT]
    assert BINARY not in trailers


def test_an_unknown_format_counts_as_none(caller):
    trailers = caller.infer(**{"endpoint-load-metrics-format": "xml"})

    assert BINARY in trailers and TEXT not in trailers


def test_without_the_option_a_response_has_none(port):
    caller = Caller(port)
    trailers = caller.infer()
    caller.close()

    assert trailers["grpc-status"] == "0"
    assert trailers.keys() & {BINARY, TEXT} == set()


def test_a_stream_begins_with_a_report_and_continues_at_the_interval(channel, port):
    stream = open_stream(channel, nanos=300_000_000)
    begin = time.monotonic()
    next(stream)
    at_once_s = time.monotonic() - begin
    caller = Caller(port)
    caller.infer()
    caller.close()
    later = [next(stream) for _ in range(2)]
    took_s = time.monotonic() - begin
    stream.cancel()

    assert at_once_s < 0.3 and took_s > 0.5
    assert later[1].rps_fractional > 0


def test_a_stream_is_no_faster_than_reports_are_renewed(channel):
    stream = open_stream(channel, nanos=1)
    begin = time.monotonic()
    for _ in range(3):
        next(stream)
    stream.cancel()

    assert time.monotonic() - begin > 0.45


def test_a_stream_too_many_is_refused_while_all_others_are_young():
    async def asked():
        yield messages.OrcaLoadReportRequest().SerializeToString()

    async def run():
        stream = BinaryReports(LoadReports(list)).method().function
        streams = [stream(asked(), None) for _ in range(MOST_STREAMS)]
        for each in streams:
            await anext(each)
        with pytest.raises(CoreError, match="as many are; open it again later") as error:
            await anext(stream(asked(), None))
        await streams.pop(0).aclose()
        streams.append(stream(asked(), None))
        await anext(streams[-1])
        for each in streams:
            await each.aclose()
        return error.value.kind

    assert asyncio.run(run()) is Kind.EXHAUSTED


def test_of_too_many_streams_the_oldest_ends(monkeypatch):
    monkeypatch.setattr("frontends.grpc.newest_streams.LEAST_S", 0.0)

    async def asked():
        yield messages.OrcaLoadReportRequest().SerializeToString()

    async def run():
        stream = BinaryReports(LoadReports(list)).method().function
        streams = [stream(asked(), None) for _ in range(MOST_STREAMS)]
        for each in streams:
            await anext(each)
        await streams.pop().aclose()
        # One takes the place of that which is closed, the other the oldest one's.
        for _ in range(2):
            streams.append(stream(asked(), None))
            await anext(streams[-1])
        with pytest.raises(CoreError, match="1024 streams of load reports may be open") as error:
            await anext(streams[0])
        await anext(streams[1])
        for each in streams:
            await each.aclose()
        return error.value.kind

    assert asyncio.run(run()) is Kind.EXHAUSTED


def test_a_stream_whose_client_sends_nothing_ends_no_other():
    async def silent():
        await asyncio.Event().wait()
        yield b""

    async def asked():
        yield messages.OrcaLoadReportRequest().SerializeToString()

    async def run():
        stream = BinaryReports(LoadReports(list)).method().function
        first = stream(asked(), None)
        await anext(first)
        quiet = [stream(silent(), None) for _ in range(MOST_STREAMS)]
        waiting = [asyncio.ensure_future(anext(each)) for each in quiet]
        await asyncio.sleep(0)
        await anext(first)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        await first.aclose()

    asyncio.run(run())


def test_a_stream_without_a_request_is_refused(channel):
    method = channel.stream_stream(STREAM)
    error = refusal(lambda: next(method(iter(()), timeout=20)))

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "send one OrcaLoadReportRequest" in error.details()


def test_the_option_turns_the_stream_off():
    with serving(Timed(0), allow_orca=False) as ((port,), _):
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        error = refusal(lambda: next(open_stream(channel)))
        channel.close()

    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_wait_of_zero_is_refused():
    with pytest.raises(CoreError, match="--orca-full-wait-secs is 0, it must be above 0"):
        core.Server(orca_full_wait_secs=0.0).__enter__()
