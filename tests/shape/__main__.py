"""python -m tests.shape [--all]: print the shape; exit status 1 if a bound is broken."""

from __future__ import annotations

import sys

from tests.shape.measures import measures, page


def main() -> int:
    found = measures()
    print(page(found, all_offenders="--all" in sys.argv[1:]))
    return 0 if all(each.holds for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
