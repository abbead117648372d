"""Target: a side that is open: its server is reached, its model known, its requests made.

What few measurements need is imported where it is used: grpcio, aiohttp and core's server are slow to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.errors import CoreError, Kind, invalid
from core_bench.data.samples import Samples, samples_of
from core_bench.load.compiled import CompiledGenerator
from core_bench.load.coroutines import CoroutineGenerator
from core_bench.load.on_thread import run_on_thread
from core_bench.load.plan import Answer, Generator, Transport, WirePlan, connections_of, seed_of
from core_bench.load.senders import Sender
from core_bench.measure.cpu import ServerCpu
from core_bench.measure.errors import readable
from core_bench.model.address import parse_address
from core_bench.model.control import Control, HttpControl, tls_context
from core_bench.native.engine import HAS_GRPC
from core_bench.plan import Level, Pace, Sequences, Side, Timing
from core_bench.wire.generate import generate_requests
from core_bench.wire.http_infer import infer_requests
from core_bench.wire.openai import openai_requests
from core_bench.wire.regions import Regions
from core_bench.wire.request import WireRequest

if TYPE_CHECKING:
    from core_bench.load.in_process import InProcessServer

_DRAIN_S = 10.0

Watch = Callable[[str, Generator], None]
"""Called several times a second with a text about what is measured, and its load generator."""


class Target:
    """Use as a context manager. Raises CoreError if the server, the model or the input data are wrong."""

    def __init__(self, side: Side, timing: Timing):
        self.side, self._timing = side, timing
        self._server: InProcessServer | None = None
        self._regions: Regions | None = None
        self._control: Control | None = None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove shared memory, and end a server of this process."""
        if self._regions:
            self._regions.close()
        if self._control:
            self._control.close()
        if self._server:
            self._server.close()

    @property
    def control(self) -> Control:
        assert self._control is not None
        return self._control

    @property
    def rows(self) -> float:
        """Return the average rows of a request; 1 for models without batches."""
        return self._samples.rows() if self.info.max_batch_size else 1.0

    def generator(self, level: Level, number: int = 0) -> Generator:
        """Return a load generator for one level; it has no connection yet.

        number   of the round: each has other random times and lengths, and both sides have the same
        """
        timing = self._timing
        drain_s = min(_DRAIN_S, timing.timeout_s)
        if self._compiled:
            plan = self.plan.at(level, timing, self.side, number)
            return CompiledGenerator(plan, timing.threads, timing.give_up_s, drain_s)
        _, slots = connections_of(level, timing, self.side, self._sequences is not None)
        return CoroutineGenerator(
            self._sender,
            level,
            self.plan.streams,
            self._sequences,
            slots=slots,
            seed=seed_of(self.side, number),
            timeout_s=timing.timeout_s,
            give_up_s=timing.give_up_s,
            drain_s=drain_s,
        )

    def check(self, watch: Watch = lambda text, generator: None) -> None:
        """Send one request. Raises CoreError with the server's text if it is refused.

        watch   called several times a second with a text and the load generator
        """
        generator = self.generator(Level(Pace.CLOSED, 1))
        tally, alive, interrupted = run_on_thread(
            generator, 0.0, 0.0, 1, lambda: watch("first request", generator)
        )
        if interrupted:
            raise KeyboardInterrupt
        if tally.errors:
            text = readable(next(iter(tally.errors)))
            raise CoreError(Kind.INVALID, f"{self.address.shown} does not answer a request: {text}")
        if not alive:
            raise CoreError(Kind.UNAVAILABLE, f"{self.address.shown} does not answer")

    def _open(self) -> None:
        side = self.side
        if side.kind == "in_process":
            from core_bench.load.in_process import InProcessServer

            self._server = InProcessServer(side)
            self.address = self._server.address
        else:
            self.address = parse_address(side.url, side.protocol)
        grpc = side.protocol == "grpc" and side.kind == "triton"
        self._tls = self.address.tls or (grpc and side.tls.on)
        if grpc:
            from core_bench.model.grpc_control import GrpcControl

            self._control = GrpcControl(side, self.address)
        else:
            self._control = HttpControl(side, self.address)
        self.info = self._control.describe(side.model, side.version)
        self.cpu = ServerCpu(self.address)
        if self._server:
            self.cpu.reason = "the server is in the process of the load generator"
        self._samples = self._made_samples()
        self._sequences = self._made_sequences()
        if side.memory:
            if side.streaming and side.protocol == "http":
                raise invalid("generate_stream has no shared memory; use -i grpc, or leave it out")
            self._regions = Regions(
                self.control, self.info, self._samples.requests, side.batch, side.memory
            )
        self.plan = self._made_plan(grpc)
        self._compiled = not (
            self._tls or self._server or (grpc and (not HAS_GRPC or side.compression != "none"))
        )
        if self._timing.threads > 1 and not self._compiled:
            raise invalid(
                "--threads needs compiled code, which sends plain HTTP and gRPC; "
                "TLS, compression and servers in this process have one thread"
            )

    def _made_samples(self) -> Samples:
        if self.side.kind == "openai":
            requests = openai_requests(self.side, self.address)
            return Samples([{} for _ in requests], [list(range(len(requests)))])
        return samples_of(self.info, self.side)

    def _made_sequences(self) -> Sequences | None:
        """Return lengths and ids. Sequences of a file are as long as its streams, unless a flag says more."""
        if not self.info.sequences:
            return None
        wanted = self.side.sequences
        if wanted.length:
            return wanted
        length = 0 if self._samples.from_file else 20
        return Sequences(length, wanted.variation, wanted.first_id, wanted.end_id, wanted.count)

    def _made_plan(self, grpc: bool) -> WirePlan:
        side = self.side
        headers: list[tuple[str, str]] = []
        transport, path = Transport.HTTP, ""
        if grpc:
            transport = Transport.GRPC_STREAM if side.streaming else Transport.GRPC
            path = "/inference.GRPCInferenceService/" + (
                "ModelStreamInfer" if side.streaming else "ModelInfer"
            )
            headers = [(":authority", self.address.authority), ("content-type", "application/grpc")]
            headers += [("te", "trailers"), ("user-agent", "core-bench")]
            headers += [(name.lower(), value) for name, value in side.headers]
        return WirePlan(
            protocol=transport,
            answer=_answer(side),
            address="" if self._server else self.address.numeric(),
            port=self.address.port,
            path=path,
            headers=headers,
            decoupled=self.info.decoupled,
            requests=self._made_requests(grpc),
            streams=self._samples.streams,
            sequences=self._sequences,
        )

    def _made_requests(self, grpc: bool) -> list[WireRequest]:
        side, info, steps = self.side, self.info, self._samples.requests
        if info.decoupled and not side.streaming:
            way = "-i grpc --streaming, or --streaming for generate_stream over HTTP"
            raise invalid(f"model '{info.name}' is decoupled: any number of responses; use {way}")
        if grpc:
            from core_bench.wire.grpc_infer import grpc_requests

            return grpc_requests(side, info, steps, self._regions)
        if side.kind == "openai":
            return openai_requests(side, self.address)
        if side.kind == "in_process":
            return []
        if not side.streaming:
            return infer_requests(side, info, self.address, steps, self._regions)
        if info.sequences:
            raise invalid("sequences do not pass through generate_stream; use -i grpc --streaming")
        return generate_requests(side, info, self.address, steps)

    def _sender(self) -> Sender:
        side = self.side
        if self._server:
            from core_bench.load.in_process import InProcessSender

            return InProcessSender(self._server.server, side, self._samples.requests)
        if side.protocol == "grpc":
            from core_bench.load.grpc_sender import GrpcSender

            requests = self.plan.requests
            return GrpcSender(side, self.address, self._tls, requests, self.info.decoupled)
        from core_bench.load.http_sender import HttpSender

        return HttpSender(self.address, tls_context(side.tls), self.plan.requests, self.plan.answer)


def _answer(side: Side) -> Answer:
    if side.kind == "openai":
        return Answer.CHAT_EVENTS if side.streaming else Answer.CHAT
    return Answer.EVENTS if side.streaming and side.protocol == "http" else Answer.WHOLE
