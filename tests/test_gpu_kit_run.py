"""The program of a kit of `make gpu-kit`: wheels are installed, tests run in groups, results are read."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap

import pytest
from gpu_kits import KIT, making, results, run, wheel


def row(test, outcome, reason="", group="g"):
    return {"group": group, "test": test, "outcome": outcome, "seconds": 0.1, "reason": reason}


def read(tmp_path, *rows):
    file = tmp_path / "tests.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows) + '{"group": "g", "te')
    return results.read(file)


def test_a_test_that_began_and_has_no_result_was_stopped(tmp_path):
    found = read(tmp_path, row("a", "running"), row("a", "passed"), row("b", "running"))

    assert [(each["test"], each["outcome"]) for each in found] == [
        ("a", "passed"),
        ("b", "stopped"),
    ]


def test_a_failure_counts_whatever_follows_it(tmp_path):
    (found,) = read(tmp_path, row("a", "failed", "E   why"), row("a", "passed"))

    assert found["outcome"] == "failed"


@pytest.mark.parametrize(
    ("name", "outcome"), [("torch", "skipped"), ("torch.nn", "skipped"), ("rapidjson", "error")]
)
def test_a_file_is_skipped_without_a_framework_and_fails_without_what_a_kit_has(name, outcome):
    found = results.judged(row("a", "error", f"E  ModuleNotFoundError: No module named '{name}'"))

    assert found["outcome"] == outcome


def test_the_summary_has_failures_then_skips_by_reason(tmp_path):
    rows = [row("a", "passed"), row("b", "failed", "x = 1\nE   assert 0\nE   more")]
    rows += [row(each, "skipped", "no GPU") for each in "cd"]

    assert results.summary(rows) == [
        "failed: b: assert 0",
        "    2 skipped: no GPU",
        "1 passed, 1 failed, 2 skipped",
    ]


def test_the_page_shows_the_reason_of_a_failure():
    text = results.page([row("a<b>", "failed", "E   1 < 2")], {"GPUs": 1})

    assert "a&lt;b&gt;" in text and "1 &lt; 2" in text and "GPUs 1" in text and "1 failed" in text


TESTS = textwrap.dedent("""
    import pytest
    pytestmark = pytest.mark.gpu

    def test_right():
        pass

    def test_wrong():
        assert 1 == 2

    @pytest.mark.skip(reason="no GPU")
    def test_none():
        pass
""")
CONFTEST = "import torch_that_is_missing\n"
BENCHMARK = "import sys\nprint(sys.argv[1:])\nsys.exit(3)\n"


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A kit with a wheel of one module and three groups of tests; returns a function that runs it."""
    folder = tmp_path_factory.mktemp("kit")
    (folder / "wheels").mkdir()
    wheel(folder / "wheels", "carried_module", files={"carried_module.py": "there = True\n"})
    for name, file in making.CARRIED.items():
        (folder / name).write_bytes((KIT / "carried" / file).read_bytes())
    (folder / "kit.json").write_text(
        json.dumps(
            {
                "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
                "commit": "abc",
                "groups": {
                    "some": ["some/test_some.py"],
                    "broken": ["broken/test_broken.py"],
                    "crash": ["crash/test_crash.py"],
                },
                "frameworks": ["numpy", "no_framework"],
                "imports": ["carried_module", "no_such_module"],
                "sanitized": ["some/test_some.py"],
            }
        )
    )
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["gpu: x"]\n',
        "some/test_some.py": TESTS,
        "broken/conftest.py": CONFTEST,
        "broken/test_broken.py": TESTS,
        "crash/test_crash.py": TESTS.replace("pass", "import os; os._exit(7)", 1),
        "benchmarks/__init__.py": "",
        "benchmarks/gpu/__init__.py": "",
        "benchmarks/gpu/__main__.py": BENCHMARK,
    }
    with tarfile.open(folder / "checkout.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))

    def ask(*arguments, **variables):
        command = [sys.executable, folder / "run", "--work", folder / "work", *arguments]
        environment = {**os.environ, **variables}
        return subprocess.run(
            [*map(str, command)], env=environment, capture_output=True, text=True, timeout=120
        )

    return ask


def test_groups_of_tests_run_one_by_one_and_leave_lines_and_a_page(kit, tmp_path):
    done = kit("tests", "--out", str(tmp_path))

    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "no_framework none" in done.stdout and "numpy none" not in done.stdout
    assert "this kit lacks something: no_such_module" in done.stdout
    assert "this kit lacks something: carried_module" not in done.stdout
    assert any(re.match(r"some +1 passed, 1 failed, 1 skipped, ", line) for line in lines)
    assert "failed: some/test_some.py::test_wrong: assert 1 == 2" in lines
    assert "No module named 'torch_that_is_missing'" in done.stdout
    assert any(line.startswith("stopped: crash/test_crash.py::test_right") for line in lines)
    assert "error: crash: pytest ended with 7: see tests.log" in lines
    assert lines[-1] == "1 passed, 1 failed, 2 error, 1 stopped, 1 skipped"
    assert {each.name for each in tmp_path.iterdir()} == {"tests.jsonl", "tests.log", "tests.html"}


def test_the_benchmark_gets_its_options_and_its_time(kit, tmp_path):
    done = kit("benchmarks", "--out", str(tmp_path), "--seconds", "100", "--", "models")

    assert done.returncode == 1
    assert re.search(rf"\['--out', '{tmp_path}', '--limit', '\d\d', 'models'", done.stdout), (
        done.stdout
    )


def test_without_the_sanitizer_it_says_so(kit, tmp_path):
    done = kit("sanitizer", "--out", str(tmp_path), PATH=str(tmp_path))

    assert done.returncode == 1
    assert "compute-sanitizer is not installed" in done.stdout or "sees no GPU" in done.stdout


def test_a_kit_for_another_python_is_refused():
    with pytest.raises(
        run.Unfit, match=r"for Python 3\.12, and this is 3\.13: make gpu-kit PYTHON"
    ):
        run.check_python("3.12", (3, 13, 0))


def test_a_group_for_which_no_time_was_left_is_named():
    found = run.stopped("g", None, "")

    assert (found["outcome"], found["reason"]) == ("stopped", "its time was over")
