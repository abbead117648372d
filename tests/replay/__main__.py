"""python -m replay: 0 if the recorded traffic of the conformance suite has the same answers again."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from replay.expected import reason
from replay.recorded import Recorded, record
from replay.replayed import replay


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m replay")
    parser.add_argument("tests", nargs="*", help="files of the suite; all without it")
    parser.add_argument("--folder", type=Path, help="where the traffic is kept")
    parser.add_argument("--again", action="store_true", help="replay what is in --folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="replay-") as made:
        folder = options.folder or Path(made)
        servers = Recorded.all(folder) if options.again else record(folder, options.tests)
        return _replayed(servers)


def _replayed(servers: list[Recorded]) -> int:
    totals: Counter[str] = Counter()
    unexpected = 0
    for each in servers:
        found = replay(each)
        known: Counter[str] = Counter()
        for difference in found["differences"]:
            if (why := reason(each, difference)) is None:
                unexpected += 1
                print(
                    f"{each.folder.name} #{difference['number']} {difference['path']}: {difference['text']}"
                )
            else:
                known[why] += 1
        totals.update({name: found[name] for name in ("equal", "uncompared")})
        totals.update(known)
        print(f"{each.folder.name}: {found['equal']} equal, {dict(known)}", flush=True)
    for name, count in totals.most_common():
        print(f"{count:>8,}  {name}")
    print(f"{unexpected:>8,}  answers differ without a known reason")
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main())
