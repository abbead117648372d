"""The load reports of a server as messages of ORCA: in trailers of responses, and as a stream.

LoadReports ─► [BinaryReports] ─► endpoint-load-metrics-bin
                               └► OpenRcaService/StreamCoreMetrics
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from core.errors import invalid
from core_orca import messages
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import StreamMethod
from frontends.grpc.newest_streams import NewestStreams
from frontends.grpc.protocol.decode import decode
from frontends.shared.load_reports import LoadReports

_PATH = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
_LEAST_S = 0.25  # between two reports of a stream: reports are renewed no faster
_DEFAULT_S = 1.0
MOST_STREAMS = 1024  # open ones of a server: one for each client that balances


class BinaryReports:
    """Serializes the reports of one server. Not thread-safe: call from the event loop only."""

    def __init__(self, reports: LoadReports):
        self._reports = reports
        self._read: object = None  # what was serialized last
        self._serialized = b""
        self._streams = NewestStreams(MOST_STREAMS, "streams of load reports")

    def latest(self) -> bytes:
        """Return the report as a serialized OrcaLoadReport, at most 0.25 seconds old."""
        numbers = self._reports.numbers()
        if numbers is not self._read:
            values, named = numbers
            report = messages.OrcaLoadReport(named_metrics=named, **values)
            self._read, self._serialized = numbers, report.SerializeToString()
        return self._serialized

    def method(self) -> StreamMethod:
        """Return the method that streams reports. It only reads, like a scrape of the metrics."""
        return StreamMethod(_PATH, "metrics", self._stream, changes=False)

    async def _stream(
        self, requests: AsyncIterator[bytes], call: GrpcCall
    ) -> AsyncGenerator[bytes, None]:
        """Send a report at once, then one per interval, until the client ends the call.

        Raises CoreError(EXHAUSTED) when it is the oldest of too many streams.
        """
        first = await anext(requests, None)
        if first is None:
            raise invalid("StreamCoreMetrics has no request; send one OrcaLoadReportRequest")
        interval = decode(messages.OrcaLoadReportRequest, first).report_interval
        every_s = (interval.seconds + interval.nanos / 1e9) or _DEFAULT_S
        with self._streams.opened() as stream:
            while True:
                yield self.latest()
                await stream.sleep(max(_LEAST_S, every_s))
