"""python -m benchmarks.many_models: print a line for each number of models, from new servers."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
from pathlib import Path

from benchmarks.many_models.measure import Found, measure
from benchmarks.many_models.repository import KINDS, write

COLUMNS = (
    ("models", "models", "{:d}"),
    ("ready_s", "ready after s", "{:.2f}"),
    ("ready_cpu_s", "CPU until then s", "{:.2f}"),
    ("pss_mib", "PSS MiB", "{:.1f}"),
    ("threads", "threads", "{:d}"),
    ("index_ms", "index ms", "{:.1f}"),
    ("metrics_ms", "metrics ms", "{:.1f}"),
    ("idle", "idle CPU %", "{:.2f}"),
    ("poll_cpu_ms", "CPU of a poll ms", "{:.0f}"),
    ("load_one_ms", "load one ms", "{:.1f}"),
    ("unload_s", "unload all s", "{:.2f}"),
    ("stop_s", "end s", "{:.2f}"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_models")
    parser.add_argument("--counts", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--idle-s", type=float, default=10.0)
    parser.add_argument("--output", type=Path, help="JSON file of what was found")
    options = parser.parse_args()
    print("| " + " | ".join(title for _, title, _ in COLUMNS) + " |")
    print("|" + "---:|" * len(COLUMNS), flush=True)
    rows: list[Found] = []
    with tempfile.TemporaryDirectory(prefix="many-models-") as folder:
        for count in options.counts:
            repository = Path(folder) / str(count)
            write(repository, count, options.kinds)
            rows.append(measure(repository, Path(folder) / f"{count}.log", count, options.idle_s))
            values = dataclasses.asdict(rows[-1])
            cells = (form.format(values[name]) for name, _, form in COLUMNS)
            print("| " + " | ".join(cells) + " |", flush=True)
    print(
        f"\nload of the machine at the end: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}"
    )
    if options.output:
        options.output.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
