"""CSV with a line for each measurement; times in microseconds."""

from __future__ import annotations

import csv
import io

from core_tune.observation import Observation
from core_tune.report.outcome import Outcome

_HEAD = (
    *("best", "instances", "batch", "least", "delay_us", "threads", "kind", "workers"),
    *("rate", "at_once", "answers_per_s", "latency_us", "average_us", "rows_per_batch"),
    *("highest_rate", "at_s"),
)


def csv_text(outcome: Outcome) -> str:
    """Return the lines in the order of the measurements.

    latency_us is that which the objective bounds. rate is empty for closed loops, at_once for the others.
    highest_rate is the limit of the settings by all measurements.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    for seen in outcome.found.observations:
        writer.writerow(_row(outcome, seen))
    return text.getvalue()


def _row(outcome: Outcome, seen: Observation) -> list[str]:
    settings = seen.settings
    executions = sum(size.count for size in seen.sizes)
    rows = sum(size.count * size.rows for size in seen.sizes)
    limit = outcome.found.limits.get(settings)
    return [
        str(int(settings == outcome.best)),
        *map(str, (settings.instances, settings.batch, settings.least or settings.batch)),
        *map(str, (settings.delay_us, settings.threads, settings.kind, settings.workers)),
        f"{seen.rate:.2f}" if seen.rate else "",
        str(seen.clients or ""),
        f"{seen.answered:.2f}",
        f"{seen.latency_s * 1e6:.0f}",
        f"{seen.client_s * 1e6:.0f}",
        f"{rows / executions:.3f}" if executions else "",
        f"{limit:.2f}" if limit is not None else "",
        f"{seen.at_s:.1f}",
    ]
