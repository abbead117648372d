"""python -m benchmarks.gpu, in the parts that need no GPU."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from core_testing import leftovers

from benchmarks.gpu import __main__ as program
from benchmarks.gpu import goals, page, results, timeline

ROOT = Path(__file__).parents[3]


def event(kind, name, start, end):
    return {"cat": kind, "name": name, "ts": start, "dur": end - start}


EVENTS = [
    event("kernel", "conv", 0, 10),
    event("kernel", "relu", 5, 12),
    event("kernel", "conv", 20, 30),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 8, 16),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 22, 24),
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 12, 20),
    {"name": "process_name", "ph": "M"},
]


@pytest.mark.parametrize(("direction", "share"), [("HtoD", 0.6), ("DtoH", 0.0), ("DtoD", 0.0)])
def test_the_overlap_is_the_time_of_copies_in_which_a_kernel_ran(direction, share):
    assert timeline.overlap(EVENTS, direction) == pytest.approx(share)


def test_copies_are_counted_by_direction():
    assert timeline.copies(EVENTS) == {"HtoD": 2, "DtoD": 0, "DtoH": 1}


def test_without_a_gpu_it_reports_so_and_measures_nothing(monkeypatch, capsys):
    monkeypatch.setattr(program, "reason", lambda: "torch finds no GPU that it can use")

    assert program.main([]) == 1
    assert capsys.readouterr().err == (
        "nothing is measured: torch finds no GPU that it can use; this benchmark needs a GPU\n"
    )


def test_an_unknown_section_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        program.main(["modles"])

    assert "no section 'modles'; choose from models, chains, shared" in capsys.readouterr().err


def section(*rows, **more):
    return {"rows": list(rows), "seconds": 3.2, **more}


FOUND = {
    "machine": {"GPU": "H100 <1>"},
    "sections": {
        "models": section({"batch": 1, "ratio": 0.9512}, {"batch": 8, "ratio": 0.7}),
        "chains": section({"chain": "bls", "ends": "GPU", "DtoH": 0}, error="it ended"),
        "onnx": section(left_out="no CUDA"),
    },
}


def test_the_page_shows_rows_with_their_goals_and_errors(tmp_path):
    page.write(tmp_path, FOUND)

    text = (tmp_path / "index.html").read_text()
    assert "H100 &lt;1&gt;" in text and "it ended" in text and "Left out: no CUDA" in text
    assert '<td class="met">0.951&nbsp;✓</td>' in text
    assert '<td class="missed">0.700&nbsp;✗</td>' in text


def test_a_goal_is_missed_if_one_row_misses_it():
    found = {(row["section"], row["goal"]): row for row in goals.summary(FOUND["sections"])}

    ratio = found["models", "rate at least 0.95 of a bare loop"]
    assert (ratio["worst"], ratio["rows"], ratio["result"]) == (0.7, "1 of 2", "missed")
    copies = found["chains", "no copy to the host between steps"]
    assert (copies["worst"], copies["rows"], copies["result"]) == (0, "1 of 1", "met")
    assert found["onnx", "rate at least 0.95 of a bare loop"]["result"] == "not measured"


def test_the_lines_name_goals_that_were_judged_and_what_failed():
    assert page.lines(FOUND) == [
        "missed  models       1 of 2    rate at least 0.95 of a bare loop, worst 0.700",
        "met     chains       1 of 1    no copy to the host between steps, worst 0",
        "error    chains: it ended",
        "left out onnx: no CUDA",
    ]


def test_a_row_that_failed_is_an_error_of_its_section():
    rows = [{"batch": 1, "error": "no kernel"}, {"batch": 8}]

    assert page.errors({"sections": {"models": section(*rows)}}) == [
        "models: 1 rows, such as no kernel"
    ]


def test_numbers_of_rows_are_short():
    row = {"batch": 8, "ratio": 0.123456789, "mib": [12345.678], "right": True}

    assert results.rounded(row) == {"batch": 8, "ratio": 0.12346, "mib": [12346.0], "right": True}


def test_every_section_has_a_limit_and_a_line_in_the_description():
    known = list(program.sections(argparse.Namespace(), Path()))

    assert list(program.LIMITS_S) == known
    assert [line.split()[0] for line in program.__doc__.splitlines() if line[:4] == "    "] == known


def test_a_goal_is_of_a_section_that_there_is():
    assert {name for goal in goals.GOALS for name in goal.sections} <= set(program.LIMITS_S)


def test_each_row_is_written_when_it_is_there(tmp_path):
    seen = results.Section(tmp_path, "models", {"GPU": "H100"})
    seen.add({"batch": 1}, 0.51)

    found = results.read(tmp_path)
    assert found["machine"] == {"GPU": "H100"}
    assert found["sections"] == {"models": {"rows": [{"batch": 1}], "seconds": 0.5}}
    assert {each.name for each in tmp_path.iterdir()} == {"results.json", "index.html"}


def test_a_section_that_runs_again_replaces_its_rows_only(tmp_path):
    for name in ("models", "chains", "models"):
        results.Section(tmp_path, name, {}).add({"of": name}, 1)

    assert list(results.read(tmp_path)["sections"]) == ["chains", "models"]
    assert results.read(tmp_path)["sections"]["models"]["rows"] == [{"of": "models"}]


def failing():
    yield {"batch": 1}
    raise RuntimeError("no memory")


def leaving_out():
    raise results.LeftOut("no CUDA")
    yield


@pytest.fixture
def played(monkeypatch, tmp_path):
    """Two sections on a machine that has a GPU."""
    both = {"models": failing, "onnx": leaving_out}
    monkeypatch.setattr(program, "sections", lambda *_: both)
    monkeypatch.setattr(program, "machine", lambda: {"GPU": "H100"})
    monkeypatch.setattr(program, "reason", lambda: "")
    return tmp_path


def test_a_section_that_fails_keeps_its_rows_and_has_the_error(played):
    with pytest.raises(RuntimeError):
        program.main(["models", "--inside", "--out", str(played)])

    (found,) = results.read(played)["sections"].values()
    assert found["rows"] == [{"batch": 1}] and found["error"] == "RuntimeError: no memory"


def test_a_section_that_is_left_out_does_not_fail(played):
    assert program.main(["onnx", "--inside", "--out", str(played)]) == 0

    (found,) = results.read(played)["sections"].values()
    assert found["left_out"] == "no CUDA" and "error" not in found


def test_a_section_that_crashes_or_takes_too_long_does_not_keep_others_from_running(
    played, monkeypatch, capsys
):
    ran = []

    def run(command, seconds):
        ran.append((command[command.index("--inside") + 1], round(seconds)))
        return -11 if len(ran) == 1 else None

    monkeypatch.setattr(program, "run_group", run)
    # A crash leaves no handler behind for the tests that follow.
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)

    assert program.main(["--out", str(played), "--limit", "100"]) == 1

    assert ran == [("models", 100), ("onnx", 60)]
    found = {name: each["error"] for name, each in results.read(played)["sections"].items()}
    assert found == {"models": "its process ended with -11", "onnx": "ended after 60 s"}
    assert "error    models: its process ended with -11" in capsys.readouterr().out


def test_no_section_begins_after_the_limit(played, monkeypatch):
    monkeypatch.setattr(program, "run_group", lambda *_: pytest.fail("nothing may run"))
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)

    assert program.main(["--out", str(played), "--limit", "0"]) == 1

    found = results.read(played)["sections"]
    assert {each["error"] for each in found.values()} == {"no time was left"}


RUN_GROUP = """
import sys
from benchmarks.gpu.group import run_group
print(run_group([sys.executable, "-c", sys.argv[2]], float(sys.argv[1])))
"""


def grouped(program, seconds=60.0):
    """Start Python with run_group for a program. A process without threads of other tests forks."""
    command = [sys.executable, "-c", RUN_GROUP, str(seconds), program]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_command_ends_with_all_that_it_started(tmp_path):
    file = tmp_path / "started"
    child = (
        f"import os; open({str(file)!r}, 'w').write(str(os.getpid())); import time; time.sleep(600)"
    )
    program = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.DEVNULL)\n"
        f"while not (os.path.exists({str(file)!r}) and os.path.getsize({str(file)!r})): pass"
    )

    with grouped(program) as process:
        assert process.communicate(timeout=60)[0] == "0\n"

    assert leftovers.settles(lambda: ended(int(file.read_text())))


def test_a_command_ends_when_its_parent_is_killed():
    slow = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"

    with grouped(slow) as process:
        child = int(process.stdout.readline())
        process.kill()

    assert leftovers.settles(lambda: ended(child))


def ended(number):
    """Return whether a process has ended; one whose parent has not asked for its status yet counts."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(
    ("program", "seconds", "status"),
    [("import time; time.sleep(600)", 0.1, "None"), ("raise SystemExit(3)", 60, "3")],
)
def test_a_command_gives_its_status_or_none_if_it_takes_too_long(program, seconds, status):
    with grouped(program, seconds) as process:
        assert process.communicate(timeout=60)[0] == f"{status}\n"
