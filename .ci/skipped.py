"""Say in one table which tests were skipped and why: python .ci/skipped.py REPORT…

REPORT is what `pytest --junit-xml` writes. Needs nothing but Python.
"""

import ast
import sys
import xml.etree.ElementTree as xml
from collections import Counter


def reason_of(skipped):
    """Return why a test was skipped; for a file that was skipped as a whole, the reason within its text."""
    message = skipped.get("message", "")
    if message != "collection skipped":
        return message
    # The text is the repr of (file, line, "Skipped: reason").
    return ast.literal_eval(skipped.text)[2].removeprefix("Skipped: ")


def reasons(reports):
    """Count the skipped tests of all reports by their reasons."""
    found = Counter()
    for report in reports:
        for skipped in xml.parse(report).iter("skipped"):
            if skipped.get("type") != "pytest.xfail":
                found[reason_of(skipped)] += 1
    return found


def main(*reports):
    found = reasons(reports)
    if not found:
        print("no test was skipped")
        return
    print(f"skipped: {found.total()} tests and files")
    for reason, count in found.most_common():
        print(f"{count:6}  {reason}")


if __name__ == "__main__":
    main(*sys.argv[1:])
