"""Say in one table which test files took longest: python .ci/slowest.py REPORT…

REPORT is what `pytest --junit-xml` writes. Needs nothing but Python.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as xml

SHOWN = 40
ROOT = Path(__file__).parents[1]


def file_of(classname):
    """Return the path of a test file, from the name that a report has: "tests.unit.test_a.TestB"."""
    parts = classname.split(".")
    for end in range(len(parts), 0, -1):
        path = "/".join(parts[:end]) + ".py"
        if (ROOT / path).is_file():
            return path
    return classname


def main(*reports):
    seconds, tests = Counter(), Counter()
    for report in reports:
        for case in xml.parse(report).iter("testcase"):
            file = file_of(case.get("classname", ""))
            seconds[file] += float(case.get("time", 0))
            tests[file] += 1
    shown, took = min(SHOWN, len(seconds)), sum(seconds.values())
    print(f"slowest: {shown} of {len(seconds)} files, which took {took:.0f} s")
    for file, took in seconds.most_common(SHOWN):
        print(f"{took:6.0f} s  {tests[file]:5}  {file}")


if __name__ == "__main__":
    main(*sys.argv[1:])
