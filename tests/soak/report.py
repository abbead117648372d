"""The table of a soak."""

from __future__ import annotations

import os
from collections.abc import Iterator

from soak.run import Found


def lines(found: Found) -> Iterator[str]:
    """The table, line by line, in Markdown."""
    ledger = found.ledger
    yield "| requests | offered | right | given up | refused, and why |"
    yield "|---|---:|---:|---:|---|"
    for name, line in ledger.lines.items():
        why = ", ".join(f"{reason} {count}" for reason, count in sorted(line.refused.items()))
        yield f"| {name} | {line.offered} | {line.right} | {line.given_up} | {why} |"
    rows = ledger.lines.values()
    offered = sum(line.offered for line in rows)
    refused = sum(sum(line.refused.values()) for line in rows)
    yield (
        f"| **all** | {offered} | {sum(line.right for line in rows)} | "
        f"{sum(line.given_up for line in rows)} | {refused} |"
    )
    yield ""
    yield "| what happened | times |"
    yield "|---|---:|"
    for name, times in sorted((found.changes + found.visits).items()):
        yield f"| {name.replace('_', ' ')} | {times} |"
    yield ""
    yield "| what the server holds | after the warm-up | at the end |"
    yield "|---|---:|---:|"
    samples = found.upkeep.settled()
    first, last = samples[0], samples[-1]
    yield f"| resident under load, MiB | {first.resident_mib:.1f} | {last.resident_mib:.1f} |"
    yield f"| PSS of all processes, MiB | {first.pss_mib:.1f} | {last.pss_mib:.1f} |"
    before, after = found.rest
    yield f"| resident at rest, MiB | {before.resident_mib:.1f} | {after.resident_mib:.1f} |"
    yield f"| threads at rest | {before.threads} | {after.threads} |"
    counts = [sum(each.descriptors.values()) for each in found.rest]
    yield f"| descriptors at rest | {counts[0]} | {counts[1]} |"
    yield ""
    yield (
        f"{offered / found.seconds:.0f} requests a second for {found.seconds:.0f} s; answers after "
        f"{ledger.latency_ms(0.5):.1f} ms (median), {ledger.latency_ms(0.99):.0f} ms (99 %). Memory: "
        f"{found.upkeep.grown_mib():+.1f} MiB, {found.upkeep.slope_mib_per_minute():+.2f} MiB a minute. "
        f"{found.end_s:.1f} s from SIGTERM to the end. Load of the machine: {os.getloadavg()[0]:.1f}."
    )
    yield ""
    yield f"{len(found.problems)} problems" + (":" if found.problems else "")
    yield from (f"- {text}" for text in found.problems[:100])
