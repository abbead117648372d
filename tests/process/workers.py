"""Models and requests that identify the answering process of a server."""

import pathlib
from importlib.util import find_spec

import grpc
import numpy as np
from conformance.model import Model
from tritonclient.grpc import service_pb2, service_pb2_grpc

from core.system.platform import PORTABLE

# Returns the process in which it runs: a thread of the worker.
WHO = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        pid = np.array([os.getpid()], np.int64)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("PID", pid)]) for _ in requests]
"""
CONFIG = """
backend: "python"
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "PID" data_type: TYPE_INT64 dims: [ 1 ] } ]
parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }
"""
who = Model("who", "plain", config=CONFIG, files={"1/model.py": WHO})
BODY = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}
ENGINES = ["grpcio", "native"]
if find_spec("frontends.grpc.native.connection") is None:  # built without libnghttp2
    ENGINES.remove("native")
if PORTABLE:  # the supervisor opens the socket, which grpcio cannot take
    ENGINES.remove("grpcio")
# So many connections that both of two workers get some, but for once in 10^12 runs.
CONNECTIONS = 40


def children(pid):
    """The processes that a process has started and that still run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(server, requests=CONNECTIONS):
    """Return the answering processes; each request has a separate connection."""
    answers = [server.infer("who", BODY) for _ in range(requests)]
    assert {answer.status for answer in answers} == {200}
    return {answer.json["outputs"][0]["data"][0] for answer in answers}


def pids_of_grpc(server, requests=CONNECTIONS):
    """The same over gRPC."""
    found = set()
    for _ in range(requests):
        # Without a separate pool a channel uses the connection of another one.
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(server.grpc_address, options=options) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            request = service_pb2.ModelInferRequest(model_name="who")
            request.inputs.add(name="IN", datatype="INT32", shape=[1]).contents.int_contents[:] = [
                1
            ]
            (pid,) = np.frombuffer(stub.ModelInfer(request).raw_output_contents[0], np.int64)
            found.add(int(pid))
    return found


def from_every_connection(ask):
    """Return the distinct responses over many connections."""
    return {ask() for _ in range(8)}
