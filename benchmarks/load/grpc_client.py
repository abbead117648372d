"""GrpcClient: load by a client with gRPC's C++ library, like real clients."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.compiled import compiled, package_flags
from benchmarks.exchange import Exchange
from benchmarks.load.generator import Failed, Load, Target, output_of

SOURCE = Path(__file__).with_suffix(".cc")


class GrpcClient:
    """The client; the constructor compiles it. Raises Missing without a compiler or the library."""

    def __init__(self, core: int, cache: Path):
        self._core = core
        flags = package_flags("grpc++", "libgrpc++-dev")
        self._program = compiled(SOURCE, cache, [*flags, "-pthread"])

    def run(
        self, target: Target, exchange: Exchange, connections: int, seconds: float, folder: Path
    ) -> Load:
        bodies = []
        for index, request in enumerate(exchange.requests):
            body = folder / f"{index}.message"
            body.write_bytes(request.body)
            bodies += [str(target.answer_sizes[index]), str(body)]
        command = [str(self._program), f"127.0.0.1:{target.grpc_port}", exchange.requests[0].path]
        command += [str(connections), str(seconds), *bodies]
        text = output_of(command, self._core, seconds)
        try:
            return Load(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise Failed(f"the gRPC client gave no result: {text[-400:]}") from error
