"""python -m replay: 0 if the recorded traffic of the conformance suite has the same answers again."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from replay.expected import reason
from replay.judged import WHOLE, problems
from replay.recorded import Recorded, record
from replay.replayed import replay


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m replay")
    parser.add_argument("tests", nargs="*", help="files of the suite; all without it")
    parser.add_argument("--folder", type=Path, help="where the traffic is kept")
    parser.add_argument("--again", action="store_true", help="replay what is in --folder")
    parser.add_argument(
        "--least",
        type=int,
        help=f"answers that must be equal; default: {WHOLE} of the whole suite, 1 of chosen files or --again",
    )
    options = parser.parse_args()
    least = options.least
    if least is None:
        least = 1 if options.tests or options.again else WHOLE
    with tempfile.TemporaryDirectory(prefix="replay-") as made:
        folder = options.folder or Path(made)
        servers = Recorded.all(folder) if options.again else record(folder, options.tests)
        return _replayed(servers, least)


def _replayed(servers: list[Recorded], least: int) -> int:
    totals: Counter[str] = Counter()
    reports: dict[str, Any] = {}
    unexpected: list[str] = []
    for each in servers:
        name = each.folder.name
        found = reports[name] = replay(each)
        known: Counter[str] = Counter()
        for difference in found["differences"]:
            if (why := reason(each, difference)) is None:
                unexpected.append(
                    f"{name} #{difference['number']} {difference['path']}: {difference['text']}"
                )
            else:
                known[why] += 1
        totals.update({kind: found[kind] for kind in ("equal", "uncompared")})
        totals.update(known)
        print(f"{name}: {found['equal']} equal, {dict(known)}", flush=True)
    for kind, count in totals.most_common():
        print(f"{count:>8,}  {kind}")
    print(f"{len(unexpected):>8,}  answers differ without a known reason")
    wrong = problems(reports, unexpected, least)
    for text in wrong:
        print(f"PROBLEM {text}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
