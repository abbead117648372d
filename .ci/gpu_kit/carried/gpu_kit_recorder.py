"""A plugin of pytest: a line of JSON for each test as it ends. What ran is known, whatever ends the run.

$GPU_KIT_RECORD names the file, to which lines are added, and $GPU_KIT_GROUP the group of the tests.
"""

import json
import os

LONGEST = 2000  # characters of a reason: the end of a traceback says most


def record(test, outcome, seconds=0.0, reason=""):
    row = {"group": os.environ["GPU_KIT_GROUP"], "test": test, "outcome": outcome}
    row |= {"seconds": round(seconds, 3), "reason": reason[-LONGEST:]}
    with open(os.environ["GPU_KIT_RECORD"], "a") as file:
        file.write(json.dumps(row) + "\n")


def reason_of(report):
    """Return why a test or file was skipped or failed."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return report.longreprtext


def pytest_runtest_logstart(nodeid, location):
    record(nodeid, "running")


def pytest_runtest_logreport(report):
    if report.failed or report.skipped or report.when == "call":
        record(report.nodeid, report.outcome, report.duration, reason_of(report))


def pytest_collectreport(report):
    if report.failed or report.skipped:
        outcome = "error" if report.failed else "skipped"
        record(report.nodeid, outcome, 0.0, reason_of(report))
