"""A gRPC client that sends more requests to the faster server: python examples/balanced_client.py

Two servers in this process have a model of the same name; one needs three times as long for a request. Each
response reports the load of its server, and the client's policy weighted_round_robin reads it. It needs
`pip install --find-links wheels 'core[orca]' 'tritonclient[grpc]'`.
"""

import json
import random
import time

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

import core

PER_S, SECONDS, SETTLING_S = 60, 4, 2

# The policy uses a report after the blackout period. The defaults are 10 and 1 seconds.
POLICY = {"weighted_round_robin": {"blackoutPeriod": "0.2s", "weightUpdatePeriod": "0.2s"}}


def start(seconds):
    """Start a server whose model needs this time; return it and the port of gRPC."""

    def double(x):
        time.sleep(seconds)
        return {"y": 2 * x}

    server = core.Server(orca_trailers=True)
    server.start()
    server.bind("double", double, inputs={"x": ("FP32", [1])}, outputs={"y": ("FP32", [1])})
    return server, server.serve(grpc_port=0)["grpc"]


def main():
    (fast, first), (slow, second) = start(0.01), start(0.03)
    channel = grpc.insecure_channel(
        f"ipv4:127.0.0.1:{first},127.0.0.1:{second}",
        options=[("grpc.service_config", json.dumps({"loadBalancingConfig": [POLICY]}))],
    )
    with fast, slow, channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        request = service_pb2.ModelInferRequest(model_name="double")
        request.inputs.add(name="x", datatype="FP32", shape=[1])
        request.raw_input_contents.append(np.float32([21]).tobytes())

        def answered():
            found = [each.statistics("double") for each in (fast, slow)]
            return np.array([each[0]["inference_stats"]["success"]["count"] for each in found])

        def send(seconds):
            end, pending = time.monotonic() + seconds, []
            while time.monotonic() < end:
                time.sleep(random.expovariate(PER_S))
                pending.append(stub.ModelInfer.future(request))
            return [each.result() for each in pending]

        send(SETTLING_S)
        before = answered()
        send(SECONDS - SETTLING_S)
        shares = (answered() - before) / (answered() - before).sum()
    print(f"fast server: {shares[0]:.0%}, slow server: {shares[1]:.0%}")


if __name__ == "__main__":
    main()
