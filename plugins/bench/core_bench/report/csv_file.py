"""CSV with the columns of perf_analyzer; times in microseconds."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from core_bench.measure.result import CaseResult
from core_bench.measure.split import PARTS
from core_bench.measure.spread import Interval

_QUANTILES = (0.5, 0.9, 0.95, 0.99)


def csv_text(cases: Sequence[CaseResult], quantile: float, verbose: bool) -> str:
    """Return a line for each case that has a round, by ascending load.

    The time for sending and receiving in the client is not measured apart: it is 0, and part of that of
    the network. With `verbose`, more columns follow behind those of perf_analyzer.
    """
    cases = sorted((each for each in cases if each.rounds), key=lambda each: each.level.value)
    more = quantile not in (-1, *_QUANTILES)
    head = ["Request Rate" if cases and cases[0].level.open else "Concurrency"]
    head += ["Inferences/Second", "Client Send", "Network+Server Send/Recv", "Server Queue"]
    head += ["Server Compute Input", "Server Compute Infer", "Server Compute Output", "Client Recv"]
    head += [f"p{100 * each:g} latency" for each in _QUANTILES]
    head += [f"p{100 * quantile:g} latency"] if more else []
    if verbose:
        head += ["request/response", "response wait", "Avg latency", "p99.9 latency", "Errors"]
        head += ["Server CPU/Request", "Low Inferences/Second", "High Inferences/Second"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for case in cases:
        writer.writerow(_row(case, quantile if more else None, verbose))
    return text.getvalue()


def _row(case: CaseResult, quantile: float | None, verbose: bool) -> list[str]:
    rate = case.rate()
    rows = case.side.batch
    average = _us(case.latency(-1))
    parts = [found.median if (found := case.part_us(part)) else 0.0 for part in PARTS]
    row = [f"{case.level.value:g}", _number(rate.median * rows if rate else 0)]
    row += ["0", f"{max(average - sum(parts), 0):.0f}", *(f"{each:.0f}" for each in parts), "0"]
    row += [f"{_us(case.latency(each)):.0f}" for each in _QUANTILES]
    row += [f"{_us(case.latency(quantile)):.0f}"] if quantile is not None else []
    if verbose:
        cpu = case.cpu_us()
        row += ["0", f"{average:.0f}", f"{average:.0f}", f"{_us(case.latency(0.999)):.0f}"]
        row += [str(case.count("failed")), f"{cpu.median:.2f}" if cpu else ""]
        row += [_number(rate.low * rows), _number(rate.high * rows)] if rate else ["", ""]
    return row


def _us(found: Interval | None) -> float:
    return found.median * 1e6 if found else 0.0


def _number(value: float) -> str:
    return f"{value:.6g}"
