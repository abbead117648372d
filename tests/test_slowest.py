"""`.ci/slowest.py` adds the times of the tests of each file."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_slowest" name="a" time="1.5"/>
<testcase classname="tests.test_slowest.TestClass" name="b" time="2"/>
<testcase classname="tests.test_groups" name="c" time="40"/>
<testcase classname="unknown.file" name="d" time="0.1"/>
<testcase classname="" name="tests.skipped_as_a_whole" time="0.0"/>
</testsuite></testsuites>"""


def test_files_are_named_with_their_seconds_and_tests(tmp_path):
    report = tmp_path / "group-1.xml"
    report.write_text(REPORT)

    table = subprocess.check_output(
        [sys.executable, ROOT / ".ci" / "slowest.py", report], text=True
    ).splitlines()

    assert table == [
        "slowest: 4 of 4 files, which took 44 s",
        "    40 s      1  tests/test_groups.py",
        "     4 s      2  tests/test_slowest.py",
        "     0 s      1  unknown.file",
        "     0 s      1  ",
    ]
