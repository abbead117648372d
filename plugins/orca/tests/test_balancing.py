"""A gRPC client that balances by load reports; `make test-balancing` does it for minutes, more exactly."""

import re
import subprocess
import sys
from pathlib import Path

from balancing import Timed, balanced, serving, shares

EXAMPLE = Path(__file__).parents[3] / "examples" / "balanced_client.py"


def test_the_example_sends_most_requests_to_the_fast_server():
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, timeout=120, check=False
    )

    found = re.fullmatch(r"fast server: (\d+)%, slow server: (\d+)%\n", done.stdout)
    assert found, done.stdout + done.stderr
    fast, slow = map(int, found.groups())
    assert 2 < fast / slow < 4.5  # 3 is right


def test_reports_out_of_band_need_no_option_of_the_server():
    policy = {"enableOobLoadReport": True, "oobReportingPeriod": "0.25s"}
    models = Timed(0.01), Timed(0.03)
    with serving(*models) as (ports, servers), balanced(ports, **policy) as channel:
        fast, slow = shares(channel, servers, per_s=60, seconds=3.5, settle_s=1.5)

    speeds = models[1].mean_s / models[0].mean_s  # 3 on a quiet machine
    assert 2 / 3 < fast / slow / speeds < 3 / 2


def test_without_reports_all_servers_get_the_same():
    models = Timed(0.005), Timed(0.015)
    with serving(*models) as (ports, servers), balanced(ports) as channel:
        fast, slow = shares(channel, servers, per_s=100, seconds=1, settle_s=0.2)

    assert 0.8 < fast / slow < 1.25
