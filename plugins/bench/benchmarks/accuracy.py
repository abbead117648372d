"""The percentiles of core bench beside the truth: python plugins/bench/benchmarks/accuracy.py [--seconds 5]

tests/known_server.cc answers after delays that are known: 39 of 40 answers take 10 ms and one takes 40 ms, so
the 99th percentile is 40 ms. Closed and open loops, from 100 to 20,000 requests a second. The status is 1 if
a p99 differs from the truth by more than 2 %.

The delay begins when the server has read a request. What the machine takes beside that for both programs adds
to it: on a busy machine the figures are those of its other work.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from core_bench.measure.target import Target
from core_bench.plan import Level, Pace, Side, Timing

SOURCE = Path(__file__).parents[1] / "tests" / "known_server.cc"
DELAYS_US = ([10_000] * 39 + [40_000]) * 5
MEAN_S = sum(DELAYS_US) / len(DELAYS_US) / 1e6
TRUTH_MS = {"p50": 10.0, "p99": 40.0}
RATES = (100, 1_000, 5_000, 20_000)
LIMIT = 0.02


def levels():
    """Return (title, level): in a closed loop, as many requests in flight as give the rate."""
    for rate in RATES:
        yield f"closed, {rate:,} a second", Level(Pace.CLOSED, max(1, round(rate * MEAN_S)))
        yield f"open, {rate:,} a second", Level(Pace.CONSTANT, rate)
        yield f"Poisson, {rate:,} a second", Level(Pace.POISSON, rate)


def measured(program, level, seconds):
    """Return answers per second, p50 and p99 in milliseconds."""
    server = subprocess.Popen(
        [program, ",".join(map(str, DELAYS_US))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    side = Side(name="m", model="m", url=f"127.0.0.1:{int(server.stdout.readline())}", different=2)
    try:
        with Target(side, Timing(settle_s=0.0, warmup_s=0.0)) as target:
            tally, alive = target.generator(level).run(0.5, seconds, 0)
    finally:
        server.stdin.close()
        server.wait()
    if not alive or tally.errors:
        sys.exit(f"requests failed: {dict(tally.errors)}")
    quantiles = [tally.latency.quantile(each) / 1e6 for each in (0.5, 0.99)]
    return (tally.counts["completed"] / seconds, *quantiles)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    compiler = shutil.which("c++") or sys.exit("no C++ compiler")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/known_server"
        subprocess.run([compiler, "-O2", "-std=c++17", SOURCE, "-o", program], check=True)
        print(f"{'load':26}{'answers/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'differs by':>18}")
        for title, level in levels():
            rate, p50, p99 = measured(program, level, options.seconds)
            away = [p50 / TRUTH_MS["p50"] - 1, p99 / TRUTH_MS["p99"] - 1]
            worst = max(worst, abs(away[1]))
            print(f"{title:26}{rate:10,.0f}{p50:9.2f}{p99:9.2f}{away[0]:10.2%}{away[1]:8.2%}")
    print(f"worst p99: {worst:.2%}")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
