"""CPU time and memory of a server's processes."""

import os
import subprocess
import sys

import pytest

from benchmarks import processes
from benchmarks.processes import Stat

LINE = "41 (a) b (c)) S 7 41 9 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 5 6 7"


def test_a_command_with_parentheses_does_not_move_the_fields():
    assert processes.read_stat(LINE) == Stat(pid=41, parent=7, session=9, ticks=127)


def test_a_server_has_its_descendants_and_its_session():
    server = Stat(10, 1, 10, 0)
    child, grandchild = Stat(11, 10, 10, 0), Stat(12, 11, 12, 0)
    orphan = Stat(13, 1, 10, 0)  # its parent has ended
    others = [Stat(1, 0, 1, 0), Stat(20, 1, 20, 0)]

    found = processes.members(10, [server, child, grandchild, orphan, *others])

    assert {each.pid for each in found} == {10, 11, 12, 13}


def test_a_server_that_has_ended_has_no_processes():
    assert processes.members(10, [Stat(1, 0, 1, 0)]) == []


SMAPS = """\
00400000-00500000 r-xp 00001000 08:01 77 /usr/bin/python3
Rss:                 100 kB
Pss:                  50 kB
Anonymous:            10 kB
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [heap]
Rss:                   8 kB
Pss:                   6 kB
Anonymous:             8 kB
VmFlags: rd wr mr mw me
"""


def test_mappings_of_files_and_of_memory_are_distinguished():
    file, heap = processes.mappings(SMAPS)

    assert file == (("08:01", "77", "00001000"), {"Rss": 102400, "Pss": 51200, "Anonymous": 10240})
    assert heap == (None, {"Rss": 8192, "Pss": 6144, "Anonymous": 8192})


def test_memory_of_two_processes_with_the_same_file_counts_the_file_once(tmp_path, monkeypatch):
    for pid in (10, 11):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (x) S 10 10 10" + " 0" * 20)
        (tmp_path / str(pid) / "smaps").write_text(SMAPS)
    monkeypatch.setattr(processes, "PROC", tmp_path)

    found = processes.alone_bytes(10)

    # Each process counts its private pages of the file and of its heap; both count the rest of the file once.
    assert found == (10 + 6 + 10 + 6 + 90) * 1024


@pytest.fixture
def child():
    """A process that has burnt some CPU time and waits."""
    script = "import time\nwhile time.process_time() < 0.1: pass\nprint(flush=True)\ninput()"
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdout.readline()
    yield process
    process.communicate()


def test_a_real_process_has_used_its_time_and_holds_memory(child):
    assert processes.cpu_seconds(child.pid) >= 0.09  # a tick is 10 ms
    assert 0 < processes.pss_bytes(child.pid) <= processes.alone_bytes(child.pid) * 1.1
    assert os.getpid() not in {each.pid for each in processes.tree(child.pid)}
