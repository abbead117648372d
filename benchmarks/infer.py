"""Rate and server CPU time of one model's requests, over HTTP and gRPC.

    python benchmarks/infer.py                                        # every example model
    python benchmarks/infer.py --model digits --connections 1 16
    python benchmarks/infer.py --server other="tritonserver --backend-directory=…"

CPU µs is the user and system time of the server and its children over the requests that it answered: the
figure that travels between machines. The rate depends on the load generator too, which runs here, in
Python, on the same machine. Servers are measured in turn, round by round, so that both sides of a
comparison see the same machine; the median round is shown.
"""

import argparse
import asyncio
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import triton_to_np_dtype

ROOT = Path(__file__).parents[1]
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server process on free ports."""

    def __init__(self, name, command, models):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.http, self.grpc, metrics = (each.getsockname()[1] for each in sockets)
        for each in sockets:
            each.close()
        self.name = name
        self.process = subprocess.Popen(
            [
                *shlex.split(command),
                f"--model-repository={models}",
                f"--http-port={self.http}",
                f"--grpc-port={self.grpc}",
                f"--metrics-port={metrics}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait_until_ready(self):
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            try:
                url = f"http://127.0.0.1:{self.http}/v2/health/ready"
                with urllib.request.urlopen(url, timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{self.name} did not get ready")

    def cpu_seconds(self):
        """User and system time of the server and its children so far."""
        total = 0
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text().rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            if int(fields[3]) == self.process.pid:  # its session
                total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@contextmanager
def running(name, command, models):
    server = Server(name, command, models)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def example_inputs(metadata):
    """(name, datatype, array) for each input; sizes that are free are 1."""
    found = []
    for each in metadata["inputs"]:
        shape = [max(1, int(size)) for size in each["shape"]]
        if each["datatype"] == "BYTES":
            array = np.full(shape, b"text", np.object_)
        else:
            array = np.ones(shape, triton_to_np_dtype(each["datatype"]))
        found.append((each["name"], each["datatype"], array))
    return found


def http_request(server, model, inputs):
    """The bytes of one request, tensors in the binary form."""
    tensors = []
    for name, datatype, array in inputs:
        tensor = triton_http.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array, binary_data=True)
        tensors.append(tensor)
    body, length = triton_http.InferenceServerClient.generate_request_body(tensors)
    length = len(body) if length is None else length
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: 127.0.0.1:{server.http}\r\n"
        f"Content-Length: {len(body)}\r\nInference-Header-Content-Length: {length}\r\n\r\n"
    )
    return head.encode() + body


def grpc_request(server, model, inputs):
    """The serialized ModelInferRequest."""
    tensors = []
    for name, datatype, array in inputs:
        tensor = triton_grpc.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    made = triton_grpc._utils._get_inference_request(
        infer_inputs=tensors,
        model_name=model,
        model_version="",
        request_id="",
        outputs=None,
        sequence_id=0,
        sequence_start=False,
        sequence_end=False,
        priority=0,
        timeout=None,
        parameters=None,
    )
    return made.SerializeToString()


async def http_load(server, request, connections, seconds):
    """Send the request over and over; the number of answers."""
    end = time.monotonic() + seconds

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.http)
        count = 0
        while time.monotonic() < end:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise SystemExit(head.decode())
            size = next(
                line.partition(b":")[2]
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            await reader.readexactly(int(size))
            count += 1
        writer.close()
        return count

    return sum(await asyncio.gather(*(one() for _ in range(connections))))


async def grpc_load(server, request, connections, seconds):
    """The same over gRPC, one channel for each connection."""
    end = time.monotonic() + seconds

    async def one(number):
        options = [("grpc.channel_id", number), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.grpc}", options) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            count = 0
            while time.monotonic() < end:
                await call(request)
                count += 1
            return count

    return sum(await asyncio.gather(*(one(number) for number in range(connections))))


PROTOCOLS = {"http": (http_request, http_load), "grpc": (grpc_request, grpc_load)}


def measure(server, model, protocol, connections, seconds):
    """(answers a second, CPU µs an answer) of one round."""
    make, load = PROTOCOLS[protocol]
    client = triton_http.InferenceServerClient(f"127.0.0.1:{server.http}")
    request = make(server, model, example_inputs(client.get_model_metadata(model)))
    client.close()
    asyncio.run(load(server, request, connections, seconds / 4))  # warm
    cpu, start = server.cpu_seconds(), time.monotonic()
    count = asyncio.run(load(server, request, connections, seconds))
    return count / (time.monotonic() - start), (server.cpu_seconds() - cpu) / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", default=ROOT / "examples" / "models", type=Path)
    parser.add_argument("--model", action="append", help="default: every model that is ready")
    parser.add_argument("--protocol", action="append", choices=list(PROTOCOLS))
    parser.add_argument("--connections", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--seconds", type=float, default=4.0, help="of one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--server", action="append", default=[], help="NAME=COMMAND to compare with"
    )
    options = parser.parse_args()
    commands = {"core": f"{sys.executable} -m core.serve"}
    commands.update(each.split("=", 1) for each in options.server)

    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(name, command, options.models.resolve()))
            for name, command in commands.items()
        ]
        client = triton_http.InferenceServerClient(f"127.0.0.1:{servers[0].http}")
        ready = [each["name"] for each in client.get_model_repository_index() if "state" in each]
        client.close()
        print(f"{'model':20} {'protocol':8} {'conn':>4} {'server':10} {'infer/s':>9} {'CPU µs':>8}")
        for model in options.model or ready:
            for protocol in options.protocol or PROTOCOLS:
                for connections in options.connections:
                    rounds = {server.name: [] for server in servers}
                    for _ in range(options.rounds):
                        for server in servers:
                            rounds[server.name].append(
                                measure(server, model, protocol, connections, options.seconds)
                            )
                    for name, found in rounds.items():
                        rate, cpu = (statistics.median(each) for each in zip(*found, strict=True))
                        print(
                            f"{model:20} {protocol:8} {connections:4} {name:10} {rate:9.0f} {cpu:8.1f}"
                        )


if __name__ == "__main__":
    main()
