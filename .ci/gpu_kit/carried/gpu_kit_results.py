"""The results of tests: from the lines of the recorder to a summary and a page."""

import html
import json
import re
from collections import Counter, defaultdict

# What a machine may lack. Tests that import another missing package show a mistake of the kit.
FRAMEWORKS = {"cupy", "jax", "nvforest", "tensorrt", "torch"}
MISSING = re.compile(r"No module named '([\w.]+)'")
BAD = ("failed", "error", "stopped")
STYLE = """body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
table { border-collapse: collapse } th, td { padding: 0.2em 0.8em; text-align: left; vertical-align: top }
td { border-bottom: 1px solid #8884 } pre { overflow-x: auto } .bad { color: #b00020 }
:root { color-scheme: light dark }"""


def judged(row):
    """Return a row; an error of a file that needs a framework that is not there is a skip."""
    missing = MISSING.findall(row["reason"])
    framework = missing[-1].split(".")[0] if missing else ""
    if row["outcome"] == "error" and framework in FRAMEWORKS:
        return {**row, "outcome": "skipped", "reason": f"{framework} is not installed"}
    return row


def read(file):
    """Return the last row of each test. A test that began and has no result was stopped."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:  # the line that was being written when all was killed
            continue
        key = row["group"], row["test"]
        # A test that passed may fail in its clean-up; the failure counts.
        if found.get(key, {}).get("outcome") not in BAD:
            found[key] = judged(row)
    ended = "it did not end: a crash, or no time was left"
    return [
        {**row, "outcome": "stopped", "reason": ended} if row["outcome"] == "running" else row
        for row in found.values()
    ]


def counts(rows):
    """Return group → Counter of outcomes."""
    found = defaultdict(Counter)
    for row in rows:
        found[row["group"]][row["outcome"]] += 1
    return found


def shown(counted):
    """Return the outcomes of a Counter as text."""
    order = ("passed", "failed", "error", "stopped", "skipped")
    return ", ".join(f"{counted[each]} {each}" for each in order if counted[each]) or "no test"


def last_line(reason):
    """Return what an error says, in one line."""
    lines = [each.removeprefix("E").strip() for each in reason.splitlines() if each[:2] == "E "]
    return (lines or reason.strip().splitlines() or [""])[0][:160]


def summary(rows):
    """Return the lines to print: failures with their reasons, skips by reason, and the sum."""
    lines = [
        f"{row['outcome']}: {row['test']}: {last_line(row['reason'])}"
        for row in rows
        if row["outcome"] in BAD
    ]
    skipped = Counter(row["reason"] for row in rows if row["outcome"] == "skipped")
    lines += [f"{count:5} skipped: {last_line(reason)}" for reason, count in skipped.most_common()]
    return [*lines, shown(Counter(row["outcome"] for row in rows))]


def page(rows, machine):
    """Return the page of all tests as HTML."""
    head = " · ".join(
        f"{html.escape(name)} {html.escape(str(value))}" for name, value in machine.items()
    )
    groups = "".join(
        f"<tr><td>{html.escape(group)}<td>{shown(counted)}"
        for group, counted in counts(rows).items()
    )
    bad = "".join(
        f'<h3 class="bad">{html.escape(row["test"])}: {row["outcome"]}</h3>'
        f"<pre>{html.escape(row['reason'])}</pre>"
        for row in rows
        if row["outcome"] in BAD
    )
    every = "".join(
        f"<tr><td>{html.escape(row['test'])}<td>{row['outcome']}<td>{row['seconds']:.2f}"
        f"<td>{html.escape(last_line(row['reason']))}"
        for row in rows
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Tests on a GPU</title>'
        f"<style>{STYLE}</style><h1>Tests on a GPU</h1><p>{head}</p><table>{groups}</table>{bad}"
        f"<h2>All</h2><table><tr><th>test<th>outcome<th>seconds<th>reason</tr>{every}</table></html>\n"
    )
