"""Servers of unequal speed, and a gRPC client that balances requests over them by their load reports."""

import json
import random
import time
from contextlib import ExitStack, contextmanager

import grpc
import numpy as np

import core
from frontends.grpc.protocol import messages

MODEL = "work"


class Timed:
    """A model of which each execution takes `seconds`, and `row_s` more for each row.

    executions         how many there have been
    asked_s, taken_s   what they should have taken together, and what they have taken
    """

    def __init__(self, seconds, row_s=0.0):
        self.seconds, self.row_s = seconds, row_s
        self.executions = 0
        self.asked_s = self.taken_s = 0.0

    def __call__(self, x):
        asked_s = self.seconds + self.row_s * len(x)
        begin = time.monotonic()
        time.sleep(asked_s)
        self.asked_s += asked_s
        self.taken_s += time.monotonic() - begin
        self.executions += 1
        return {"y": x}

    @property
    def mean_s(self):
        """Return how long an execution has taken; on a busy machine it takes longer than asked."""
        return self.taken_s / self.executions


@contextmanager
def serving(*models, most_rows=1, **options):
    """Start one server for each model; yield the gRPC ports and the servers, in their order.

    most_rows   rows of several requests that one execution takes
    """
    with ExitStack() as stack:
        servers = []
        for model in models:
            server = stack.enter_context(core.Server(**options))
            servers.append(server)
            server.bind(
                MODEL, model, inputs={"x": ("FP32", [1])}, outputs={"y": ("FP32", [1])},
                batching=True, max_batch_size=most_rows,
            )  # fmt: skip
        yield [server.serve(grpc_port=0)["grpc"] for server in servers], servers


def balanced(ports, **settings):
    """Return a channel that balances over the servers at these ports by gRPC's weighted_round_robin."""
    policy = {"blackoutPeriod": "0.2s", "weightUpdatePeriod": "0.2s", **settings}
    config = {"loadBalancingConfig": [{"weighted_round_robin": policy}]}
    return grpc.insecure_channel(
        "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports),
        options=[("grpc.service_config", json.dumps(config))],
    )


def counts(servers):
    """Return how many requests each server has answered."""
    return [
        server.statistics(MODEL)[0]["inference_stats"]["success"]["count"] for server in servers
    ]


def request(rows=1):
    found = messages.ModelInferRequest(model_name=MODEL)
    tensor = found.inputs.add(name="x", datatype="FP32", shape=[rows, 1])
    tensor.contents.fp32_contents[:] = np.zeros(rows, np.float32)
    return found


def shares(channel, servers, per_s, seconds, settle_s, seed=1):
    """Send requests at random times, and return the share of each server after `settle_s` seconds.

    per_s   mean number of requests per second
    """
    infer = channel.unary_unary(
        "/inference.GRPCInferenceService/ModelInfer",
        lambda message: message.SerializeToString(),
        messages.ModelInferResponse.FromString,
    )
    one, arrivals, pending = request(), random.Random(seed), []
    begin = due = time.monotonic()
    before = None
    while (passed := time.monotonic() - begin) < seconds:
        if before is None and passed >= settle_s:
            before = counts(servers)
        due += arrivals.expovariate(per_s)
        time.sleep(max(0.0, due - time.monotonic()))
        pending.append(infer.future(one, timeout=20))
    for each in pending:
        each.result()
    sent = [after - start for start, after in zip(before, counts(servers), strict=True)]
    return [each / sum(sent) for each in sent]
